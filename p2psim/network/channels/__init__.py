"""What happens to a message on its way, as scenarios say it: airtime, collisions, delay, loss, sending it again."""
