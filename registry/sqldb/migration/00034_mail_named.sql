-- +goose Up
-- How many addresses of others a token's submissions have named in a day, counted from 1970, UTC. It only adds: what programs of the version before take in is
-- not counted.
CREATE TABLE mail_named (
    token TEXT NOT NULL,
    day BIGINT NOT NULL,
    addresses BIGINT NOT NULL,
    PRIMARY KEY (token, day)
);

-- +goose Down
DROP TABLE mail_named;
