package sqlstore

import "errors"

// try runs one of several parts of a transaction. What the part was refused is returned first, with nothing left of its
// writes, and the others go on; the second error ends the whole transaction.
func (t *tx) try(part func() error) (refused, err error) {
	if _, err := t.exec("SAVEPOINT part"); err != nil {
		return nil, err
	}
	noted := len(t.events)
	if refused = part(); refused == nil {
		refused = t.send()
	}
	if refused != nil {
		t.later = nil
		t.forget()
		t.events = t.events[:min(noted, len(t.events))]
		if _, err := t.exec("ROLLBACK TO SAVEPOINT part"); err != nil {
			return nil, errors.Join(refused, err)
		}
	}
	if _, err := t.exec("RELEASE SAVEPOINT part"); err != nil {
		return nil, errors.Join(refused, err)
	}
	if refused != nil && !isRefusal(refused) {
		return nil, refused
	}
	return refused, nil
}
