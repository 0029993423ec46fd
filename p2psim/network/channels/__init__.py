"""What happens to a message on its way: airtime, collisions, delay, loss, and sending it again.

A channel is opened on a world and gives a medium (:mod:`p2psim.network.channels.medium`); callers know no more of it.
"""
