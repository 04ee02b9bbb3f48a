package ocfl_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/holdfast/holdfast/ocfl"
)

// TestFixityAlgorithms checks the digests of the specification and of extension 0009 with objects
// that list them. The values are from coreutils and Python's hashlib. The lengths are around
// BLAKE2b's block of 128 bytes.
func TestFixityAlgorithms(t *testing.T) {
	for _, test := range []struct {
		length            int
		algorithm, digest string
	}{
		{0, "blake2b-512", "786a02f742015903c6c6fd852552d272912f4740e15847618a86e217f71f5419d25e1031afee585313896444934eb04b903a685b1448b755d56f701afe9be2ce"},
		{0, "blake2b-160", "3345524abf6bbe1809449224b5972c41790b6cf2"},
		{1, "blake2b-512", "2fa3f686df876995167e7c2e5d74c4c7b6e48f8068fe0e44208344d480f7904c36963e44115fe3eb2a3ac8694c28bcb4f5a0f3276f2e79487d8219057a506e4b"},
		{1, "blake2b-160", "082ad992fb76871c33a1b9993a082952feaca5e6"},
		{127, "blake2b-512", "08b38d2c2a521e8a819cdca2d43b52df46768623ff2a89e8cbf5a0095e9873d8714e9f0f94bda6c0f43731a465769f5b4a978bc0efa8e0ccf8a37d901d3265b5"},
		{127, "blake2b-160", "b488b0bae10bd45e7a441fea5a47999c19dbb073"},
		{128, "blake2b-512", "0be555525cf1e0b9b74d2a743dd1ee3164b1de36feaa6084a1d054af06a5091346d6a2be5068fd5c612e0f8cbcefaacac2f5b309226bfc28817916fbc3ef0b23"},
		{128, "blake2b-160", "5cde3dcb89217d5815bca54d6c7365c5dd188ab9"},
		{129, "blake2b-512", "31f95aa8eb1487ce670bc3c0c60ef98b83b7d7d88ff6b7d719fdc8838f301785591eed59d633b5f47b73aa828cf2dcdc775fc92c0de005ae9b7922b0f3251885"},
		{129, "blake2b-160", "fd00121d08f627a1ed72f13cbd825f971034be82"},
		{256, "blake2b-512", "f8517f3d1accbf944ef17fc76662f7d91e6bbff44a7c5a0ed63bc52d177810f5dee0881ae4541269f230ae91b0c4f8d8c9fa1fd094280e5ed38bc7da95427820"},
		{256, "blake2b-160", "420a7e23ba532070d8f5dd94c46c2485fe5e4144"},
		{1000, "blake2b-512", "b49dc7bf928d7dee879fafc64c1c93088810acc1f4a02264c4c09809c0f3dbc771e25e2dedce3dbbc0640da14af9fe42fb42b02c9fdff701b817f22192b7b2db"},
		{1000, "blake2b-160", "13a82596e78e613d88b56c371c1c314dfcaf698e"},
		{1000, "blake2b-256", "6ac4bea923678eb024090384d6e767b5870f849057dc19b172d8d9f2df30bf8e"},
		{1000, "blake2b-384", "6214c3f027a8fe7287e11dda962db16d5f363ca4c7ad940f99bbe25dc2349bfd6b6fb24c03cc4a49019b767cd699707e"},
		{1000, "md5", "de809ff794e91b68f9e91a2b7030bcb0"},
		{1000, "sha1", "38f3aa587f4aa04965a359f9151092759b3a4c2a"},
		{1000, "sha256", "89f4ff56a25dd1db06a4ce6033603775d705fb96f30f8693733fef602a1ca532"},
		{1000, "sha512/256", "9fcc4b1db1bb5edafdad4c6c54a1e6a5552ab30a7d5fbf82a6597ed3292c6290"},
	} {
		content := make([]byte, test.length)
		for i := range content {
			content[i] = byte(i * 7)
		}
		for _, flip := range []bool{false, true} {
			digest := test.digest
			if flip {
				first := "0"
				if digest[0] == '0' {
					first = "1"
				}
				digest = first + digest[1:]
			}
			s := newSample(ocfl.Spec11)
			s.files["v2/content/b.txt"] = &fstest.MapFile{Data: content}
			s.newest(func(inv block) {
				b, now := digestOf("sha512", "b"), digestOf("sha512", string(content))
				manifest(inv)[now] = manifest(inv)[b]
				state(inv, "v2")[now] = state(inv, "v2")[b]
				delete(manifest(inv), b)
				delete(state(inv, "v2"), b)
				inv["fixity"] = block{test.algorithm: block{digest: []string{"v2/content/b.txt"}}}
			})
			report, err := ocfl.ValidateFS(t.Context(), s.files, ocfl.ValidateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(report.Codes(), "E093"); got != flip || !flip && !report.Valid() {
				t.Errorf("%s of %d bytes, wrong = %v: %v", test.algorithm, test.length, flip, report.Faults)
			}
		}
	}
}
