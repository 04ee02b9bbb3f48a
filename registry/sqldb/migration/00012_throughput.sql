-- +goose Up
-- What was preserved and failed, by interval: minutes for two days, hours for a year.
CREATE TABLE throughput (
  step      BIGINT NOT NULL, -- length of the interval in seconds: 60, 3600
  at        BIGINT NOT NULL, -- its beginning
  preserved BIGINT NOT NULL, -- jobs
  bytes     BIGINT NOT NULL, -- of what they preserved
  failed    BIGINT NOT NULL, -- jobs
  -- The most jobs that waited and ran at the end of one of its minutes; NULL: nobody looked.
  waiting   BIGINT,
  running   BIGINT,
  PRIMARY KEY (step, at)
);

-- How many steps of each stage were done in a minute, for a few hours.
CREATE TABLE throughput_stage (
  at    BIGINT NOT NULL,
  stage TEXT NOT NULL,
  done  BIGINT NOT NULL,
  PRIMARY KEY (at, stage)
);

-- How far the feed is counted, and up to which time. Whoever changes it counts; others lose.
CREATE TABLE throughput_cursor (
  id       BIGINT PRIMARY KEY, -- 1
  feed_seq BIGINT NOT NULL,
  noted_to BIGINT NOT NULL
);
INSERT INTO throughput_cursor (id, feed_seq, noted_to) SELECT 1, COALESCE(MAX(feed_seq), 0), 0 FROM event;

-- +goose Down
DROP TABLE throughput_cursor;
DROP TABLE throughput_stage;
DROP TABLE throughput;
