package sqldb

import "errors"

// Part runs one of several parts of a transaction. What the part came to is returned first, with
// nothing left of its writes when it is an error, and the others go on; the second error ends the
// whole transaction.
func (t *Tx) Part(part func() error) (undone, err error) {
	if _, err := t.Exec("SAVEPOINT part"); err != nil {
		return nil, err
	}
	forget := t.db.above.Part()
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
