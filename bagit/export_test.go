package bagit

// InShares has the bag judged in shares of that weight.
func (v *Validator) InShares(weight int64) { v.share = weight }
