"use strict";

// Starts Swagger UI on the site's own schema. A logged-in browser sends its session; changes need the CSRF cookie too.
const place = document.getElementById("swagger");

function cookie(name) {
  const found = document.cookie.split("; ").find((part) => part.startsWith(name + "="));
  return found ? decodeURIComponent(found.slice(name.length + 1)) : "";
}

window.ui = SwaggerUIBundle({
  url: place.dataset.schema,
  domNode: place,
  deepLinking: true,
  validatorUrl: null, // no request leaves the site
  requestInterceptor: (request) => {
    const token = cookie("csrftoken");
    if (token) request.headers["X-CSRFToken"] = token;
    return request;
  },
});
