package e2e

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// rows are the rows of the table of real inputs, those with several files more than once. What
// should become of each is the table's last column.
func (in *inputs) rows() []realInput {
	return slices.Concat(in.samples(), in.manifests(), in.refusals(), in.batches(), in.others())
}

// samples are the inputs of Merritt's documentation: rows 1 to 8.
func (in *inputs) samples() []realInput {
	blocks, hunt, call := in.files("4blocks.jpg", "4blocks.txt"), in.files("bigHunt.txt", "bigHunt2.jpg", "bigHunt3.jpg"), in.files("call911.jpg", "call911.txt")
	containers := []object{in.members("huskyChicken.zip"), in.members("outdoorStore.zip"), in.members("souvenirs.zip")}
	for i, n := range []int{3, 8, 2} {
		if len(containers[i]) != n {
			in.t.Errorf("container %d has %d files, want %d", i, len(containers[i]), n)
		}
	}
	photos := []object{in.files("generalDrapery.jpg"), in.files("goldenDragon.jpg"), in.files("tumbleBug.jpg")}
	rows := []realInput{
		{row: 1, payload: "4blocks.checkm", completed: []object{blocks}},
		{row: 2, payload: "bigHunt.checkm", completed: []object{hunt}},
		{
			row: 2, payload: in.edited("bigHunt_wrong_size.checkm", "bigHunt.checkm", "| 33 |", "| 34 |"), failed: 1,
			told: []string{"bigHunt.txt", "33 bytes", "34 bytes"},
		},
		{row: 3, payload: "call911.checkm", completed: []object{call}},
		{
			row: 4, payload: "sampleBatchOfContainers.checkm", completed: containers,
			check: func(t *testing.T, h *holdfast, s summary) {
				wantDescribed(t, h, jobNamed(t, s, "huskyChicken.zip").ObjectID, described{Title: "Husky Chicken", Creator: "Tracy Seneca", Date: "2009-09-01"})
				wantDescribed(t, h, jobNamed(t, s, "outdoorStore.zip").ObjectID, described{Title: "The Outdoor Store, Portland OR"})
			},
		},
		{row: 5, payload: "sampleBatchOfFiles.checkm", completed: photos},
		{row: 6, payload: "sampleBatchOfManifests.checkm", completed: []object{blocks, hunt, call}},
		{
			row: 7, payload: "jazzbears.zip", completed: []object{in.members("jazzbears.zip")},
			check: func(t *testing.T, h *holdfast, s summary) {
				wantDescribed(t, h, s.Jobs[0].ObjectID, described{
					LocalIDs: []string{"2001697390"}, Title: "Jazz for the bears", Creator: "(:unkn) unknown", Date: "1920-1932",
				})
			},
		},
	}
	for _, suffix := range []string{".zip", ".tar.gz"} {
		first, second := "brain_v1"+suffix, "brain_v2"+suffix
		rows = append(rows, realInput{row: 8, payload: first, completed: []object{in.members(first)}, check: func(t *testing.T, h *holdfast, s summary) {
			in.update(t, h, s.Jobs[0].ObjectID, first, second)
		}})
	}
	return rows
}

// update brings the second version of an object, and looks at both.
func (in *inputs) update(t *testing.T, h *holdfast, id, first, second string) {
	t.Helper()
	s, code := h.submit(in.url+"/"+second, "--update", "--ark", id)
	if code != 0 || len(s.Jobs) != 1 || s.Jobs[0].Version != 2 || s.Jobs[0].ObjectID != id {
		t.Fatalf("exit=%d summary=%+v, want version 2 of %s", code, s, id)
	}
	v1, v2 := in.members(first), in.members(second)
	if len(v1) != 4 || len(v2) != 5 {
		t.Errorf("%d and %d files, want 4 and 5", len(v1), len(v2))
	}
	compareObjects(t, []object{v1, v2}, []object{export(t, h, id, "--version", "1"), export(t, h, id)})
}

// manifests are object manifests that are taken, some of them with warnings.
func (in *inputs) manifests() []realInput {
	blocks := []object{in.files("4blocks.jpg", "4blocks.txt")}
	const sample = "4blocks.checkm"
	jpg, txt := in.text("4blocks.jpg"), in.text("4blocks.txt")
	lines := strings.SplitAfter(in.text(sample), "\n")
	header := func(without ...int) string { // the sample without some of its first lines
		var kept strings.Builder
		for i, ln := range lines {
			if !slices.Contains(without, i+1) {
				kept.WriteString(ln)
			}
		}
		return kept.String()
	}
	reordered := "#%fields | nfo:fileName | nfo:fileUrl | nfo:fileSize | nfo:hashAlgorithm | nfo:hashValue | mrt:mimeType | nfo:fileLastModified\n" +
		fmt.Sprintf("4blocks.jpg | %s/4blocks.jpg | 119255 | md5 | 0b21c6d48e815dd537d42dc1cfac0111 | image/jpeg |\n", in.url) +
		fmt.Sprintf("4blocks.txt | %s/4blocks.txt | 265 | md5 | 4dbac258aa1aab9fea0f57712385283d | text/plain | 2020-01-01\n", in.url)
	return []realInput{
		{row: 9, payload: in.write("4blocks_2term_nl.checkm", in.text(sample)+"\n"), completed: blocks, warnings: []fault{{9, "after-eof"}}},
		{row: 10, payload: "4blocks_alg_uppercase.checkm", completed: blocks},
		{
			row: 12, payload: "4blocks_dup_filename_diff_folders.checkm",
			completed: []object{{"4blocks.jpg": jpg, "folder1/4blocks.txt": txt, "folder2/4blocks.txt": txt}},
		},
		{
			row: 13, payload: in.edited("4blocks_dup_filename_upcase.checkm", sample, "#%eof", in.url+"/4blocks.txt | md5 | 4dbac258aa1aab9fea0f57712385283d |  |  | 4BLOCKS.TXT\n#%eof"),
			completed: []object{{"4blocks.jpg": jpg, "4blocks.txt": txt, "4BLOCKS.TXT": txt}}, warnings: []fault{{8, "name-case"}},
		},
		{row: 16, payload: in.write("4blocks_field_reorder.checkm", strings.Join(lines[:4], "")+reordered+"#%eof\n"), completed: blocks},
		{row: 22, payload: "4blocks_missing_fname.checkm", completed: blocks},
		{row: 24, payload: "4blocks_nl_before_data.checkm", completed: blocks},
		{row: 24, payload: in.write("4blocks_nl_within_data.checkm", strings.Join(lines[:6], "")+"\n"+strings.Join(lines[6:], "")), completed: blocks},
		{row: 24, payload: "4blocks_nl_after_data.checkm", completed: blocks},
		{row: 25, payload: "4blocks_nodecl.checkm", completed: blocks, warnings: []fault{{5, "header-missing"}}},
		{row: 25, payload: "4blocks_nofields.checkm", completed: blocks, warnings: []fault{{5, "header-missing"}}},
		{row: 25, payload: "4blocks_noprefix.checkm", completed: blocks, warnings: []fault{{4, "header-missing"}}},
		{row: 25, payload: in.edited("4blocks_prefixes.checkm", sample, "#%prefix | nfo:", "#%prefix | dc: | http://purl.org/dc/elements/1.1/\n#%prefix | nfo:"), completed: blocks},
		{row: 25, payload: in.edited("4blocks_uri.checkm", sample, "http://merritt.cdlib.org/terms#", "http://example.org/terms#"), completed: blocks, warnings: []fault{{3, "header"}}},
		{row: 27, name: "as an object manifest", payload: "4blocks_noprofile.checkm", args: []string{"--type", "object-manifest"}, completed: blocks},
		{row: 28, payload: in.write("4blocks_noterm_nl.checkm", strings.TrimSuffix(in.text(sample), "\n")), completed: blocks, warnings: []fault{{8, "final-line-break"}}},
		{row: 29, payload: "4blocks_with_date.checkm", completed: blocks},
		{row: 29, payload: "4blocks_with_moddate.checkm", completed: blocks},
		{row: 29, payload: "4blocks_with_bad_date.checkm", completed: blocks, warnings: []fault{{7, "modified"}}},
		{row: 29, payload: in.edited("4blocks_with_bad_moddate.checkm", "4blocks_with_moddate.checkm", "2019-12-31T00:00.000Z", "2019-13-32"), completed: blocks, warnings: []fault{{7, "modified"}}},
		{row: 30, payload: in.write("4blocks_with_windows_crlf.checkm", strings.ReplaceAll(header(), "\n", "\r\n")), completed: blocks},
		{
			row: 38, payload: in.write("mock_object.checkm", strings.TrimSuffix(in.text("call911.checkm"), "\n")), completed: []object{in.files("call911.jpg", "call911.txt")},
			warnings: []fault{{8, "final-line-break"}},
		},
	}
}

// refusals are object manifests that are refused, by a submission of the file at once, or that
// fail.
func (in *inputs) refusals() []realInput {
	const sample, sum = "4blocks.checkm", "4dbac258aa1aab9fea0f57712385283d"
	lines := strings.SplitAfter(in.text(sample), "\n")
	refused := func(row int, payload string, faults ...fault) realInput {
		return realInput{row: row, payload: payload, failed: 1, refused: true, faults: faults}
	}
	bad := in.edited("4blocks_encoding.checkm", sample, "|  |  | 4blocks.txt", "|  |  | 4bl\x00ocks\xe9.txt")
	offset := strings.IndexByte(in.text(bad), 0)
	encoding := refused(14, bad, fault{7, "encoding"})
	encoding.told = []string{fmt.Sprintf("a NUL byte at byte %d of the file", offset), fmt.Sprintf("byte 0xE9 at byte %d of the file", offset+5), "column 6"}
	both := refused(18, "4blocks_incorrect_filesize.checkm", fault{7, "size"})
	both.check = func(t *testing.T, h *holdfast, _ summary) {
		got := faultsOf(t, h.runIn("", "check", "--remote", "--json", in.file(t, "4blocks_incorrect_filesize.checkm")))
		if want := []fault{{6, "remote-size"}, {7, "size"}}; !sameFaults(got, want) {
			t.Errorf("asked for the sizes, too, the faults are %v, want %v", got, want)
		}
	}
	return []realInput{
		refused(11, "4blocks_dup_filename.checkm", fault{8, "name-duplicate"}),
		encoding,
		refused(15, in.edited("4blocks_extra_pipe.checkm", sample, "| 4blocks.txt", "| 4blocks.txt | text/plain | "), fault{7, "extra-columns"}),
		refused(17, "4blocks_incorrect_algorithm.checkm", fault{7, "algorithm"}),
		both,
		{
			row: 18, name: "digits only", payload: in.edited("4blocks_wrong_filesize.checkm", "4blocks_incorrect_filesize.checkm", "111xxx", "112"), failed: 1,
			told: []string{"119255 bytes", "111 bytes", "265 bytes", "112 bytes"},
		},
		refused(19, "4blocks_incorrect_md5_format.checkm", fault{6, "digest"}),
		refused(19, in.edited("4blocks_incorrect_sha256.checkm", sample, "md5 | "+sum, "sha256 | "+sum+"x"), fault{7, "digest"}),
		{
			row: 20, payload: "4blocks_incorrect_url_hostname.checkm", failed: 1, system: true, told: []string{"4blocks.jpg", "raw"},
			check: func(t *testing.T, h *holdfast, s summary) {
				it := rows[item](h, "item", "show", s.Jobs[0].ItemID)[0]
				if it.Tries != 1 || it.Stage != "download" {
					t.Errorf("item %+v, want one try at download", it)
				}
				h.must(0, "item", "requeue", it.ID, "--reason", "the name is known now")
				h.must(1, "watch", "-q", s.BatchID)
			},
		},
		refused(21, "4blocks_incorrect_url_protocol.checkm", fault{7, "url-scheme"}),
		refused(23, "4blocks_missing_url.checkm", fault{6, "url-missing"}),
		refused(26, "4blocks_noeof.checkm", fault{7, "truncated"}),
		{
			row: 27, payload: "4blocks_noprofile.checkm", failed: 1, refused: true, faults: []fault{{1, "profile-missing"}},
		},
		refused(26, in.write("4blocks_cut.checkm", strings.Join(lines[:6], "")+lines[6][:40]), fault{7, "truncated"}),
	}
}

// sameFaults reports whether there are the same faults in both, in any order.
func sameFaults(a, b []fault) bool {
	order := func(x, y fault) int { return cmp.Or(x.line-y.line, strings.Compare(x.rule, y.rule)) }
	return slices.Equal(slices.SortedFunc(slices.Values(a), order), slices.SortedFunc(slices.Values(b), order))
}

// batches are batch manifests: rows 31 to 37.
func (in *inputs) batches() []realInput {
	blocks, hunt, call := in.files("4blocks.jpg", "4blocks.txt"), in.files("bigHunt.txt", "bigHunt2.jpg", "bigHunt3.jpg"), in.files("call911.jpg", "call911.txt")
	husky, outdoor, souvenirs := in.members("huskyChicken.zip"), in.members("outdoorStore.zip"), in.members("souvenirs.zip")
	row := func(file, rest string) string { return in.url + "/" + file + rest }
	mixed := manifest("mrt-single-file-batch-manifest",
		row("goldenDragon.zip", " | | | | | goldenDragon.zip"), row("tumbleBug.jpg", " | | | | | tumbleBug.jpg"), row("call911.txt", " | | | | | call911.txt"))
	upper := func(file string) string {
		sum := sha256.Sum256([]byte(in.text(file)))
		return row(file, " | SHA256 | "+strings.ToUpper(hex.EncodeToString(sum[:]))+" | | | "+file)
	}
	withERC := object{"mrt-erc.txt": "erc:\nwho: Ann\nwhat: ERC\nwhen: 2011\nwhere: local1; local2; local3\n", "a.txt": "a"}
	erc := in.zip("erc123.zip", withERC)
	plain := in.zip("plain.zip", map[string]string{"b.txt": "b"})
	ids := in.write("localid_batch.checkm", manifest("mrt-container-batch-manifest", row(erc, " | | | | | erc.zip | | local4; local5;local6 ;local4;local5")))
	ids2 := in.write("localid2_batch.checkm", manifest("mrt-container-batch-manifest", row(plain, " | | | | | plain.zip | | local9; local9; a%scb; local8 | Bob | Plain | 2012")))
	return []realInput{
		{
			row: 31, payload: "sampleBatchOfContainers_incorrect_filename.checkm", completed: []object{husky, souvenirs}, failed: 1,
			faults: []fault{{7, "container-name"}}, told: []string{"outdoorStore.zip.txt"},
		},
		{
			row: 32, payload: in.edited("sampleBatchOfContainers_with_bad_ark.checkm", "sampleBatchOfContainers.checkm", "| souvenirs.zip |  |", "| souvenirs.zip | ark:/foo |"),
			completed: []object{husky, outdoor}, failed: 1, faults: []fault{{8, "primary-identifier"}}, told: []string{"ark:/foo"},
		},
		{
			row: 33, payload: in.write("sampleBatchOfFiles_mixedTypes.checkm", mixed), completed: []object{in.files("tumbleBug.jpg"), in.files("call911.txt")}, failed: 1,
			told: []string{"goldenDragon.zip", "404"},
		},
		{
			row: 34, payload: in.write("sampleBatchOfFiles_mixedTypes_checkm.checkm", manifest("mrt-single-file-batch-manifest",
				row("4blocks.checkm", " | | | | | 4blocks.checkm"), row("huskyChicken.zip", " | | | | | huskyChicken.zip"))),
			completed: []object{in.files("4blocks.checkm"), in.files("huskyChicken.zip")},
		},
		{row: 35, payload: "sampleBatchOfManifests_incorrect_filename.checkm", completed: []object{blocks, hunt, call}},
		{
			row: 36, payload: in.write("digest_batch.checkm", manifest("mrt-single-file-batch-manifest", upper("tumbleBug.jpg"), upper("call911.txt"))),
			completed: []object{in.files("tumbleBug.jpg"), in.files("call911.txt")},
		},
		{
			row: 37, payload: ids, args: []string{"--local-id", "of-the-form"}, completed: []object{withERC},
			check: func(t *testing.T, h *holdfast, s summary) {
				wantDescribed(t, h, s.Jobs[0].ObjectID, described{
					LocalIDs: []string{"local4", "local5", "local6", "local1", "local2", "local3"}, Title: "ERC", Creator: "Ann", Date: "2011",
				})
			},
		},
		{
			row: 37, payload: ids2, completed: []object{{"b.txt": "b"}},
			check: func(t *testing.T, h *holdfast, s summary) {
				wantDescribed(t, h, s.Jobs[0].ObjectID, described{LocalIDs: []string{"local9", "a;b", "local8"}, Title: "Plain", Creator: "Bob", Date: "2012"})
			},
		},
	}
}

// others are files and containers: rows 39 and 40.
func (in *inputs) others() []realInput {
	const hello, good = "Hello", "md5:8b1a9953c4611296a827abf8c47804d7"
	in.write("test.txt", hello)
	in.write("foo.txt", "foo\n")
	members := map[string]string{"test.txt": hello, "foo.txt": "foo\n"}
	described39 := map[string]string{"mrt-erc.txt": "erc:\nwho: Tracy\nwhat: Test\nwhen: 2009\nwhere: ark:/99999/dummy\nwhere: localid;localidtwo;localidthree\n", "test.txt": hello}
	csv := "title,creator,date,fileUrl\nJazz,Tracy,1920," + in.url + "/foo.txt\n"
	return []realInput{
		{
			row: 39, payload: in.zip("test_erc.zip", described39), args: []string{"--local-id", "localidfour;localidfive"}, completed: []object{described39},
			check: func(t *testing.T, h *holdfast, s summary) {
				wantDescribed(t, h, s.Jobs[0].ObjectID, described{
					ID: "ark:/99999/dummy", LocalIDs: []string{"localidfour", "localidfive", "localid", "localidtwo", "localidthree"},
					Title: "Test", Creator: "Tracy", Date: "2009",
				})
			},
		},
		{row: 39, payload: in.zip("test.zip", members), completed: []object{members}},
		{row: 39, name: "as a file", payload: "test.zip", args: []string{"--type", "file"}, completed: []object{in.files("test.zip")}},
		{row: 39, payload: "test.txt", args: []string{"--digest", good}, completed: []object{in.files("test.txt")}},
		{
			row: 39, name: "with a wrong digest", payload: "test.txt", args: []string{"--digest", strings.TrimSuffix(good, "7") + "8"}, failed: 1,
			told: []string{"8b1a9953c4611296a827abf8c47804d7", "8b1a9953c4611296a827abf8c47804d8"},
		},
		{row: 39, payload: "foo.txt", completed: []object{in.files("foo.txt")}},
		// A table that Merritt's page would turn into a manifest is a file like others, and is said
		// to be one.
		{row: 40, payload: in.write("objects.csv", csv), completed: []object{{"objects.csv": csv}}, check: func(t *testing.T, h *holdfast, _ summary) {
			says(t, "check", h.runIn("", "check", "--json", in.file(t, "objects.csv")).stdout, `"type":"file"`, `"valid":true`)
		}},
	}
}
