package sqldb

import "errors"

// Part runs one of several parts of a transaction. If the part fails, Part undoes the part's writes
// and returns its error first; the transaction goes on. The second error ends the whole
// transaction.
func (t *Tx) Part(part func() error) (undone, err error) {
	if _, err := t.Exec("SAVEPOINT part"); err != nil {
		return nil, err
	}
	forget := t.db.state.Part()
	if undone = part(); undone == nil {
		undone = t.send()
	}
	if undone != nil {
		t.later = nil
		forget()
		if _, err := t.Exec("ROLLBACK TO SAVEPOINT part"); err != nil {
			return nil, errors.Join(undone, err)
		}
	}
	if _, err := t.Exec("RELEASE SAVEPOINT part"); err != nil {
		return nil, errors.Join(undone, err)
	}
	return undone, nil
}
