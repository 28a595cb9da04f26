"""The pages: views, forms, urls, template tags, static files. Calls services and selectors."""
