-- +goose Up
-- What the sources of a collection's deposits ask for. The secret is sealed under a key that is not in here, and bound to the
-- other columns but the last two. It only adds, so that programs of the version before go on working.
CREATE TABLE credential (
  collection TEXT NOT NULL,
  origin     TEXT NOT NULL, -- https://HOST[:PORT] or s3://BUCKET
  kind       TEXT NOT NULL,
  name       TEXT NOT NULL, -- user, or id of the access key
  endpoint   TEXT NOT NULL,
  region     TEXT NOT NULL,
  path_style BIGINT NOT NULL,
  sealed     TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (collection, origin)
);

-- +goose Down
DROP TABLE credential;
