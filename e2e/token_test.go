package e2e

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// as runs a client command with a token, as somebody does who has no folder of ours.
func (h *holdfast) as(secret string, args ...string) result {
	h.t.Helper()
	url, _ := h.address()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = h.t.TempDir(), append(h.environment(), "HOLDFAST_URL="+url, "HOLDFAST_TOKEN="+secret)
	return h.finish(cmd)
}

// token makes a token and returns its secret and its id.
func (h *holdfast) token(args ...string) (secret, id string) {
	h.t.Helper()
	made := rows[struct {
		Secret string `json:"secret"`
		Token  struct {
			ID string `json:"id"`
		} `json:"token"`
	}](h, append([]string{"token", "create"}, args...)...)
	if len(made) != 1 || made[0].Secret == "" || made[0].Token.ID == "" {
		h.t.Fatalf("token create printed %+v", made)
	}
	return made[0].Secret, made[0].Token.ID
}

// TestTokens: a token's holder does not see what the role excludes, forbidden acts are refused, and
// each refusal is in the audit log.
func TestTokens(t *testing.T) {
	t.Parallel()
	source := serveAny(t, 1)
	h := up(t)
	h.collection("maps")
	h.collection("letters")
	cartographer, _ := h.token("--name", "cartographer", "--role", "depositor", "--collection", "maps")
	viewer, _ := h.token("--name", "reading room", "--role", "viewer")
	operator, _ := h.token("--name", "night shift", "--role", "operator")
	leaver, leaverID := h.token("--name", "leaver", "--role", "operator")
	expired, _ := h.token("--name", "visitor", "--role", "viewer", "--expires", "1s")

	mine := h.as(cartographer, "submit", "--wait", "-q", source+"/map.txt", "--collection", "maps")
	if mine.code != 0 {
		t.Fatalf("a depositor's own submission ended with %d: %s", mine.code, mine.stderr)
	}
	s, code := h.submit(source+"/letter.txt", "--collection", "letters")
	if code != 0 {
		t.Fatalf("exit=%d summary=%+v", code, s)
	}
	foreign := []string{s.BatchID, s.Jobs[0].ItemID, s.Jobs[0].ObjectID, s.Jobs[0].ARK, "letter"}
	own := h.list("collection:maps", "action:ingest")[0].ID

	t.Run("sees nothing of others", func(t *testing.T) {
		for _, args := range [][]string{
			{"item", "list"}, {"batch", "list"}, {"object", "list"}, {"events"}, {"item", "list", "letter"}, {"collection", "list"},
		} {
			r := h.as(cartographer, append(args, "--json")...)
			if r.code != 0 || len(strings.TrimSpace(r.stdout)) == 0 && len(args) != 3 {
				t.Errorf("%v ended with %d and %q: %s", args, r.code, r.stdout, r.stderr)
			}
			for _, secret := range foreign {
				if strings.Contains(r.stdout+r.stderr, secret) {
					t.Errorf("%v shows %s: %s", args, secret, r.stdout)
				}
			}
		}
		for _, args := range [][]string{
			{"item", "show", s.Jobs[0].ItemID},
			{"item", "history", s.Jobs[0].ItemID},
			{"item", "why", s.Jobs[0].ItemID},
			{"batch", "show", s.BatchID},
			{"batch", "report", s.BatchID},
			{"watch", s.BatchID},
			{"object", "show", s.Jobs[0].ObjectID},
			{"object", "show", s.Jobs[0].ARK},
			{"submit", source + "/x.txt", "--collection", "letters"},
			{"object", "events", s.Jobs[0].ObjectID},
			{"object", "export", s.Jobs[0].ObjectID, "--out", filepath.Join(t.TempDir(), "out")},
		} {
			if r := h.as(cartographer, args...); r.code != 4 {
				t.Errorf("%v ended with %d, want 4: %s%s", args, r.code, r.stdout, r.stderr)
			}
		}
	})
	t.Run("may not", func(t *testing.T) {
		for _, tt := range []struct {
			who, token string
			args       []string
		}{
			{"cartographer", cartographer, []string{"item", "cancel", own}},
			{"cartographer", cartographer, []string{"item", "priority", own, "--to", "-9"}},
			{"cartographer", cartographer, []string{"audit", "list"}},
			{"cartographer", cartographer, []string{"queue", "pause", "--reason", "me first"}},
			{"reading room", viewer, []string{"item", "requeue", own}},
			{"reading room", viewer, []string{"item", "delete", "--match", "collection:maps", "--yes"}},
			{"reading room", viewer, []string{"submit", source + "/x.txt"}},
			{"reading room", viewer, []string{"collection", "hold", "maps", "--reason", "quiet"}},
			{"night shift", operator, []string{"token", "create", "--name", "more", "--role", "admin"}},
			{"night shift", operator, []string{"token", "list"}},
		} {
			before := h.refusals(tt.who)
			if r := h.as(tt.token, tt.args...); r.code != 8 {
				t.Errorf("%s: %v ended with %d, want 8: %s%s", tt.who, tt.args, r.code, r.stdout, r.stderr)
			}
			if after := h.refusals(tt.who); after != before+1 {
				t.Errorf("%s: %v left %d entries in the audit log, want 1", tt.who, tt.args, after-before)
			}
		}
	})
	t.Run("may", func(t *testing.T) {
		for _, args := range [][]string{
			{"queue", "pause", "--reason", "lunch"}, {"queue", "resume"}, {"audit", "list"}, {"item", "list"}, {"object", "show", s.Jobs[0].ARK},
		} {
			if r := h.as(operator, args...); r.code != 0 {
				t.Errorf("%v ended with %d: %s", args, r.code, r.stderr)
			}
		}
		if r := h.as(viewer, "item", "show", s.Jobs[0].ItemID); r.code != 0 {
			t.Errorf("a viewer's look ended with %d: %s", r.code, r.stderr)
		}
	})
	t.Run("no longer", func(t *testing.T) {
		if r := h.as(leaver, "audit", "list"); r.code != 0 {
			t.Errorf("before it was revoked a token was refused with %d: %s", r.code, r.stderr)
		}
		h.must(0, "token", "revoke", leaverID)
		if r := h.as(leaver, "item", "list"); r.code != 8 {
			t.Errorf("a revoked token ended with %d: %s", r.code, r.stderr)
		}
		h.until("the visitor's token has expired", func() bool { return h.as(expired, "item", "list").code != 0 })
		if r := h.as(expired, "item", "list"); r.code != 8 {
			t.Errorf("an expired token ended with %d: %s", r.code, r.stderr)
		}
		if r := h.as("hf_NONSENSE", "item", "list"); r.code != 8 {
			t.Errorf("a token that never was ended with %d: %s", r.code, r.stderr)
		}
		list := h.must(0, "token", "list").stdout
		says(t, "the token list", list, "revoked", "expired", "cartographer", "maps")
		for _, secret := range []string{cartographer, viewer, operator, leaver, expired} {
			if strings.Contains(list+h.run("audit", "list", "--limit", "0", "--json").stdout+h.log.String(), secret) {
				t.Error("a secret is shown")
			}
		}
	})
}

// refusals counts what the audit log has of refusals of somebody.
func (h *holdfast) refusals(who string) int {
	h.t.Helper()
	all := rows[event](h, "audit", "list", "--types", "refused", "--limit", "0")
	return len(slices.DeleteFunc(all, func(e event) bool { return e.Actor != who }))
}
