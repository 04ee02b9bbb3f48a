-- +goose Up
-- Failed steps of processes that went on since are no failures to see to. Those that fail from now on become so with the process.
UPDATE work_item SET cause = 'over' WHERE status = 'failed' AND action = 'process'
  AND id NOT IN (SELECT corrupted_by FROM process WHERE status = 'error');

-- +goose Down
UPDATE work_item SET cause = '' WHERE status = 'failed' AND cause = 'over';
