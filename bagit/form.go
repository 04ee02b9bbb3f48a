package bagit

import "slices"

// Form is the form of a bag: a folder, or packed ("serialized" in the specification) into one file.
type Form string

// The forms. For FormUnknown and any other value, the Serialization and Accept-Serialization of a
// profile are not checked.
const (
	FormUnknown  Form = ""
	FormFolder   Form = "folder"
	FormTar      Form = "tar"
	FormTarGzip  Form = "tar.gz"
	FormTarBzip2 Form = "tar.bz2"
	FormTarXZ    Form = "tar.xz"
	FormTarZstd  Form = "tar.zst"
	FormZip      Form = "zip"
)

// PackedForms returns the forms in which a bag is one file.
func PackedForms() []Form {
	return []Form{FormZip, FormTar, FormTarGzip, FormTarBzip2, FormTarXZ, FormTarZstd}
}

// mediaTypes returns the media types that profiles use for the form, the usual one first. No type
// is registered for tar and gzip together.
func (f Form) mediaTypes() []string {
	switch f {
	case FormTar:
		return []string{"application/x-tar", "application/tar", "application/x-gtar"}
	case FormTarGzip:
		return []string{
			"application/gzip", "application/x-gzip", "application/tar+gzip", "application/x-tar+gzip", "application/x-gtar+gzip",
			"application/x-compressed-tar", "application/x-gtar-compressed", "application/x-tgz", "application/tgz",
		}
	case FormTarBzip2:
		return []string{"application/x-bzip2", "application/bzip2", "application/x-bzip", "application/x-tar+bzip2", "application/tar+bzip2", "application/x-bzip-compressed-tar"}
	case FormTarXZ:
		return []string{"application/x-xz", "application/xz", "application/x-tar+xz", "application/tar+xz", "application/x-xz-compressed-tar"}
	case FormTarZstd:
		return []string{"application/zstd", "application/x-zstd", "application/x-tar+zstd", "application/tar+zstd", "application/x-zstd-compressed-tar"}
	case FormZip:
		return []string{"application/zip", "application/x-zip", "application/x-zip-compressed"}
	}
	return nil
}

func (f Form) isOneOf(mediaTypes []string) bool {
	return slices.ContainsFunc(f.mediaTypes(), func(t string) bool { return slices.Contains(mediaTypes, t) })
}
