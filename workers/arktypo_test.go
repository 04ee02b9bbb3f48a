package workers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry"
)

// slip is an ARK with two neighbours exchanged, or its check character replaced where they are all
// alike.
func slip(ark string) string {
	b := []byte(ark)
	for i := len(b) - 2; i > len("ark:/99999/fk4"); i-- {
		if b[i] != b[i-1] {
			b[i], b[i-1] = b[i-1], b[i]
			return string(b)
		}
	}
	b[len(b)-1] = noid.Alphabet[(strings.IndexByte(noid.Alphabet, b[len(b)-1])+1)%len(noid.Alphabet)]
	return string(b)
}

// A row with a mistyped ARK of this NAAN fails alone, before anything is fetched, and names the
// intended object. Foreign ARKs, and names outside the template, are accepted.
func TestExpand_MistypedARK(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	meant := r.complete(r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("one", "one")})).ARK
	arks := []string{slip(meant), meant, "ark:/13030/xf93gt2r", "ark:/99999/fk4one"}
	var rows []checkm.Row
	for i, ark := range arks {
		rows = append(rows, checkm.Row{URL: r.site.put(fmt.Sprint("f", i), fmt.Sprint("text ", i)), Name: fmt.Sprint("f", i), PrimaryID: ark})
	}
	r.site.manifest("b", checkm.FileBatch, rows...)
	jobs := r.expand(r.submit(registry.Spec{Type: registry.SingleFileBatch, URL: r.site.url + "b"}))
	isContent(t, jobs[0], "mistyped", "probably meant to be "+meant+";", "correct the ARK")
	for i, j := range jobs[1:] {
		if j.Status == registry.Failed {
			t.Errorf("%s is refused: %s", arks[i+1], j.Note)
		}
	}
}

// An ARK that only the payload names is judged too.
func TestProcess_MistypedARK(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	meant := r.complete(r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("one", "one")})).ARK
	id := r.job(registry.Spec{Type: registry.ContainerType, URL: r.site.put("c.zip", zipOf(t, map[string]string{
		"a": "a", "mrt-erc.txt": "erc:\nwho: W\nwhat: T\nwhen: 2026\nwhere: " + slip(meant) + "\n",
	}))})
	isContent(t, r.fails(id), "mistyped", "probably meant to be "+meant)
}
