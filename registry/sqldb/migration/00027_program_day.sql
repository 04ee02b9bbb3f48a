-- +goose Up
-- Which versions of programs announced themselves as workers on a day, for evidence reports. Rows of worker are overwritten and forgotten.
CREATE TABLE program_day (
  day     BIGINT NOT NULL, -- days since 1970, UTC
  kind    TEXT NOT NULL,   -- worker; function: a program outside Holdfast
  version TEXT NOT NULL,
  PRIMARY KEY (day, kind, version)
);

-- +goose Down
DROP TABLE program_day;
