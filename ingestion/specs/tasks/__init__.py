"""Complete specs of supervisors and tasks, as users submit them and Headgate stores them."""
