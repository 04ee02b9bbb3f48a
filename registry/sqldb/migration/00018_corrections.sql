-- +goose Up
-- Which rows of a batch later batches correct: its jobs at these lines that had failed because of their
-- content when the later batch was submitted. A row for each range of lines, not for each line. What a
-- batch corrects as a whole are all lines.
CREATE TABLE correction (
  batch_id     TEXT NOT NULL,
  first_line   BIGINT NOT NULL,
  last_line    BIGINT NOT NULL,
  corrected_by TEXT NOT NULL,
  PRIMARY KEY (batch_id, first_line, corrected_by)
);
CREATE INDEX correction_by ON correction (corrected_by, first_line);

-- +goose Down
DROP TABLE correction;
