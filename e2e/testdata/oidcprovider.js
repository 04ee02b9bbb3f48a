// A certified OpenID provider with three people. It prints its issuer, and is one once it was asked for /setup?at=ADDRESS of the
// Holdfast that signs in at it.
const http = require("node:http");

(async () => {
  const { Provider } = await import(process.env.NODE_PATH + "/oidc-provider/lib/index.js");
  const people = {
    ann: { email: "ann@example.org", email_verified: true, groups: ["staff", "readers"] },
    bob: { email: "bob@example.org", email_verified: false, groups: ["curators"], collections: ["letters"] },
    eve: { email: "eve@example.org", email_verified: true, groups: ["visitors"] },
  };
  let answer = (_, response) => { response.statusCode = 503; response.end("not yet"); };
  const server = http.createServer((request, response) => {
    const url = new URL(request.url, issuer());
    if (url.pathname !== "/setup") return answer(request, response);
    answer = provider(url.searchParams.get("at")).callback();
    response.end("ready");
  });
  const issuer = () => "http://localhost:" + server.address().port;
  const provider = (at) => new Provider(issuer(), {
    clients: [{
      client_id: "holdfast", client_secret: "the secret of the client", response_types: ["code"], grant_types: ["authorization_code"],
      redirect_uris: [at + "/login/oidc/callback"], post_logout_redirect_uris: [at + "/login"],
    }],
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) }),
    claims: { openid: ["sub"], email: ["email", "email_verified"], groups: ["groups", "collections"] },
    scopes: ["openid", "email", "groups"],
    pkce: { required: () => true },
    features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
  });
  server.listen(0, "127.0.0.1", () => console.log(issuer()));
})();
