"""Small segments become large ones: what is merged, when, and by whom."""
