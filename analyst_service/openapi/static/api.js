// Shows the document of this address; what is tried out goes to this address alone.
window.addEventListener("DOMContentLoaded", () => {
  window.SwaggerUIBundle({
    url: "openapi.json",
    dom_id: "#api",
    deepLinking: false,
    validatorUrl: null, // asks nobody else whether the document is a good one
    persistAuthorization: false,
  });
});
