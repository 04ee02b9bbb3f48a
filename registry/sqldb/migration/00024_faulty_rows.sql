-- +goose Up
-- The rows of batches that failed because of their content. Whether a batch has some that nobody corrects is
-- asked for each batch of a list, and for all when they are counted: the index has all that it takes.
CREATE INDEX work_item_faulty ON work_item (parent_id, row_no, finished_at) WHERE status = 'failed' AND error_class = 'content';

-- +goose Down
DROP INDEX work_item_faulty;
