package deposittest

import (
	"errors"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func correctedOnce(f *fixture) {
	f.Collection("other", registry.Profile{})
	old := f.Submit()
	correct := func(url, collection, id string, rows int64) (string, error) {
		s := registrytest.Submission()
		s.Collection, s.Spec.URL, s.Spec.Corrects = collection, url, &registry.Corrects{BatchID: id, Rows: rows}
		r, err := f.Store.Submit(f.Context(), s)
		return r.BatchID, err
	}
	if _, err := correct("http://h.test/1", registrytest.Mnemonic, old, 1); !errors.Is(err, registry.ErrInvalid) {
		f.Errorf("a batch that has not failed: %v", err)
	}
	f.FailItem(old, registry.ContentFault)
	_, unknown := correct("http://h.test/1", "other", registrytest.Mnemonic, 1)
	_, foreign := correct("http://h.test/1", "other", old, 1)
	if !errors.Is(unknown, registry.ErrNotFound) || !errors.Is(foreign, registry.ErrNotFound) {
		f.Errorf("an unknown batch: %v; one of another collection: %v", unknown, foreign)
	}
	if p, err := f.Store.BatchProgress(f.Context(), old); err != nil || len(p.Corrections) != 0 {
		f.Errorf("corrections %+v, %v, want none", p.Corrections, err)
	}
	first, err := correct("http://h.test/1", registrytest.Mnemonic, old, 1)
	f.Must(err)
	p, err := f.Store.BatchProgress(f.Context(), old)
	f.Must(err)
	if len(p.Corrections) != 1 || p.Corrections[0] != (registry.Correction{BatchID: first, Rows: 1, State: registry.StatePending, Status: registry.Pending}) {
		f.Errorf("corrections %+v, want %s", p.Corrections, first)
	}
	var refused *registry.CorrectedError
	if _, err := correct("http://h.test/2", registrytest.Mnemonic, old, 1); !errors.As(err, &refused) || refused.By != first {
		f.Errorf("a second correction: %v, want a refusal that names %s", err, first)
	}
	f.FailItem(first, registry.ContentFault)
	second, err := correct("http://h.test/2", registrytest.Mnemonic, old, 1)
	f.Must(err)
	if p, err = f.Store.BatchProgress(f.Context(), old); err != nil || len(p.Corrections) != 2 || p.Corrections[0].BatchID != second || !p.Corrections[1].Void {
		f.Errorf("corrections %+v, %v, want %s, and %s as void", p.Corrections, err, second, first)
	}
}
