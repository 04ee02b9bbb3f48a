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
	"github.com/holdfast/holdfast/profile"
	"github.com/holdfast/holdfast/registry"
)

func (a *app) collectionCommand() *cobra.Command {
	return group("collection", "Make, change, list, show, hold and release collections, and set their credentials for sources",
		a.collectionListCommand(), a.collectionShowCommand(), a.collectionCreateCommand(), a.collectionUpdateCommand(), a.collectionHistoryCommand(), a.collectionImportCommand(), a.collectionHoldCommand(), a.collectionReleaseCommand(), a.credentialCommand())
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
				{name: "collection"}, {name: "name", flex: true}, {name: "owner"}, {name: "version", right: true, spare: 1}, {name: "created"},
			}}
			return l.print(a, whole(all))
		},
	})
}

func collectionRow(c registry.Collection) []string {
	return []string{c.Mnemonic, c.Profile.Name, c.Profile.Owner, strconv.Itoa(c.Version), timeText(c.CreatedAt)}
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
	var version int
	var asProfile bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a collection and its profile", Args: needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if version < 0 || version == 0 && cmd.Flags().Changed("version") {
				return usage("--version is a version's number, from 1 on")
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			it, err := c.Collection(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if version > 0 {
				v, err := c.ProfileVersion(cmd.Context(), args[0], version)
				if err != nil {
					return err
				}
				it.Profile, it.Version = v.Profile, v.Version
			}
			switch {
			case asProfile:
				return a.printProfile(it)
			case a.json:
				return a.printJSON(it)
			}
			f := collectionFacts(it)
			return f.write(a.out)
		},
	}
	cmd.Flags().IntVar(&version, "version", 0, "show version `N` of its profile")
	cmd.Flags().BoolVar(&asProfile, "profile", false, "print only the profile, as collection update takes it: YAML, with --json JSON")
	return a.clientFlags(cmd)
}

// printProfile prints a profile as a file.
func (a *app) printProfile(c registry.Collection) error {
	text, err := profile.YAML(c.Profile, fmt.Sprintf("collection %s, version %d of its profile", c.Mnemonic, c.Version))
	if a.json {
		text, err = profile.JSON(c.Profile)
		text = append(text, '\n')
	}
	if err != nil {
		return err
	}
	_, err = a.out.Write(text)
	return err
}

// collectionFacts are what people are shown of a collection.
func collectionFacts(c registry.Collection) (f facts) {
	p := c.Profile
	f.add("collection", c.Mnemonic)
	f.add("name", p.Name)
	f.add("description", p.Description)
	f.add("owner", p.Owner)
	f.add("member of", strings.Join(p.Collections, ", "))
	f.add("NOID template", p.NOIDTemplate)
	f.add("minting", p.Minting)
	f.add("inventory digest", p.Digests())
	if p.Priority != nil {
		f.add("priority", strconv.Itoa(*p.Priority))
	}
	f.add("storages", strings.Join(p.Storages, ", "))
	if p.NameEncoding != "" {
		f.add("names not in UTF-8", "are read as "+p.NameEncoding)
	}
	f.add("BagIt profile", bagProfileText(p.BagProfile))
	if p.ReleaseOneByOne {
		f.add("released", "one by one")
	}
	if p.StopOnBadRow {
		f.add("a bad row", "stops its batch")
	}
	switch {
	case p.Scan && p.ScanPartly:
		f.add("virus scan", "of what the engine can see all of")
	case p.Scan:
		f.add("virus scan", "of every file")
	}
	if days := p.DuplicateWindow() / (24 * time.Hour); days > 0 {
		f.add("the same again", fmt.Sprintf("is a duplicate for %d days", days))
	} else {
		f.add("the same again", "is never a duplicate")
	}
	if p.Callback != nil {
		f.add("callback", p.Callback.URL)
	}
	if p.Mail != nil {
		f.add("mail to", strings.Join(p.Mail.To, ", "))
	}
	if p.UploadBytes != nil {
		f.add("uploads", fmt.Sprintf("%s together at most", registry.SizeText(*p.UploadBytes)))
	}
	if p.UploadsOpen != nil {
		f.add("uploads on their way", fmt.Sprintf("%d at most", *p.UploadsOpen))
	}
	if p.RetentionDays != nil {
		f.add("batches are kept", fmt.Sprintf("for %d days after they completed", *p.RetentionDays))
	}
	f.add("embargo", p.Embargo)
	f.add("profile", fmt.Sprintf("version %d", c.Version))
	f.add("created", timeText(c.CreatedAt))
	return f
}
