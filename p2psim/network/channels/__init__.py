"""What happens to a message on its way: airtime, collisions, delay, loss, and sending it again, as scenarios have it."""
