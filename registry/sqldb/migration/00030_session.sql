-- +goose Up
-- Browsers that have signed in, and one-time links by which they can. A row goes when it ends; events tell that it was.
CREATE TABLE session (
  id          TEXT PRIMARY KEY,
  hash        TEXT NOT NULL UNIQUE, -- SHA-256 of what the cookie holds
  token_id    TEXT NOT NULL,        -- '': signed in at an OpenID provider
  subject     TEXT NOT NULL,        -- who that is there; '': a token's session
  name        TEXT NOT NULL,
  role        TEXT NOT NULL,
  collections TEXT NOT NULL,        -- JSON
  method      TEXT NOT NULL,
  agent       TEXT NOT NULL,
  address     TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  seen_at     BIGINT NOT NULL,
  idle        BIGINT NOT NULL,      -- microseconds that it may go unused
  expires_at  BIGINT NOT NULL
);
CREATE TABLE sign_in_link (
  hash       TEXT PRIMARY KEY,
  token_id   TEXT NOT NULL,
  expires_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE sign_in_link;
DROP TABLE session;
