package intake_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
)

// TestManifest_AgreesWithPlan checks that a manifest is refused for conflicting names exactly when
// no version could be planned from them, so that no ARK is minted for an impossible object.
func TestManifest_AgreesWithPlan(t *testing.T) {
	t.Parallel()
	refused := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		var manifest strings.Builder
		manifest.WriteString("#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\n")
		var files []ocfl.File
		for i := range 2 + r.IntN(4) {
			parts := make([]string, 1+r.IntN(3))
			for p := range parts {
				parts[p] = string(rune('a' + r.IntN(5)))
			}
			name := strings.Join(parts, "/")
			fmt.Fprintf(&manifest, "https://h.test/%d | | | 1 | | %s\n", i, name)
			files = append(files, ocfl.File{Path: "producer/" + name, Digest: fmt.Sprintf("%064x", i)})
		}
		manifest.WriteString("#%eof\n")
		v, err := intake.Manifest(strings.NewReader(manifest.String()), registry.ObjectManifest, intake.Options{})
		if err != nil {
			t.Fatal(err)
		}
		empty, err := ocfl.New("urn:x", "sha256")
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = ocfl.NewVersion(empty, ocfl.Change{Files: ocfl.Files(files), Created: time.Unix(0, 0)})
		var bad *ocfl.PathError
		if err != nil && !errors.As(err, &bad) {
			t.Fatal(err)
		}
		if v.Accepted != (err == nil) {
			t.Errorf("judged %v, planned %v:\n%s", rules(v), err, manifest.String())
		}
		for _, f := range v.Of(intake.Error) {
			if f.Rule != string(checkm.RuleNameDuplicate) && f.Rule != string(checkm.RuleFileAndFolder) {
				t.Errorf("%v", f)
			}
			refused++
		}
	}
	if refused < 50 {
		t.Errorf("%d refusals in all: the test shows little", refused)
	}
}

// TestJudge_LongNames checks that a name too long for most disks gives a warning in every kind of
// payload.
func TestJudge_LongNames(t *testing.T) {
	t.Parallel()
	files := tree{"a.txt": "alpha", "d/" + strings.Repeat("x", 300): "x"}
	for how, data := range map[string][]byte{"zip": files.zip(t), "tar": files.tar(t)} {
		v := judge(t, data, registry.AutoType, intake.Options{})
		if !v.Valid || v.Warnings != 1 || v.Faults[0].Rule != "name-long" || !strings.HasPrefix(v.Faults[0].File, "d/xxx") {
			t.Errorf("%s: %+v", how, v)
		}
	}
	v := judge(t, bagTree("", files).zip(t), registry.AutoType, intake.Options{})
	if !v.Valid || v.Warnings != 1 || v.Faults[0].Rule != "portable-name" || v.Faults[0].Found != "longer than 255 octets" {
		t.Errorf("a bag: %+v", v)
	}
}
