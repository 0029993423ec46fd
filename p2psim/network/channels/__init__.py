"""What happens to a message on its way, as a scenario says it: airtime, collisions, delay, loss, and sending it again."""
