"""What a release needs beside the product: its list of components with their licences."""
