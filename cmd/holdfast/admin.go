package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/registry"
)

func (a *app) collectionCommand() *cobra.Command {
	return group("collection", "List, show, hold and release collections, and set their credentials for sources",
		a.collectionListCommand(), a.collectionShowCommand(), a.collectionHoldCommand(), a.collectionReleaseCommand(), a.credentialCommand())
}

func (a *app) collectionListCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "list", Short: "List collections", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := c.Collections(cmd.Context())
			if err != nil {
				return err
			}
			l := lister[registry.Collection]{none: "no collections", row: collectionRow, columns: []column{
				{name: "collection"}, {name: "name", flex: true}, {name: "owner"}, {name: "created"},
			}}
			return l.print(a, whole(all))
		},
	})
}

func collectionRow(c registry.Collection) []string {
	return []string{c.Mnemonic, c.Profile.Name, c.Profile.Owner, timeText(c.CreatedAt)}
}

// bagProfileText names the BagIt profile that a collection demands; --json has all of it.
func bagProfileText(doc json.RawMessage) string {
	if len(doc) == 0 {
		return ""
	}
	p, err := bagit.ParseProfile(bytes.NewReader(doc))
	if err != nil {
		return err.Error() // of another version of Holdfast
	}
	return p.Identifier()
}

func (a *app) collectionShowCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "show NAME", Short: "Show a collection and its profile", Args: needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			it, err := c.Collection(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(it)
			}
			var f facts
			f.add("collection", it.Mnemonic)
			f.add("name", it.Profile.Name)
			f.add("owner", it.Profile.Owner)
			f.add("member of", strings.Join(it.Profile.Collections, ", "))
			f.add("NOID template", it.Profile.NOIDTemplate)
			f.add("Minting", it.Profile.Minting)
			f.add("inventory digest", it.Profile.Digests())
			if it.Profile.Priority != nil {
				f.add("priority", strconv.Itoa(*it.Profile.Priority))
			}
			f.add("storages", strings.Join(it.Profile.Storages, ", "))
			f.add("BagIt profile", bagProfileText(it.Profile.BagProfile))
			if it.Profile.ReleaseOneByOne {
				f.add("released", "one by one")
			}
			if it.Profile.StopOnBadRow {
				f.add("a bad row", "stops its batch")
			}
			switch p := it.Profile; {
			case p.Scan && p.ScanPartly:
				f.add("virus scan", "of what the engine can see all of")
			case p.Scan:
				f.add("virus scan", "of every file")
			}
			if days := it.Profile.DuplicateWindow() / (24 * time.Hour); days > 0 {
				f.add("the same again", fmt.Sprintf("is a duplicate for %d days", days))
			} else {
				f.add("the same again", "is never a duplicate")
			}
			f.add("created", timeText(it.CreatedAt))
			return f.write(a.out)
		},
	})
}
