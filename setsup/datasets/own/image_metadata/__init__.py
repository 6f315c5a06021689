"""Folders of images with metadata, as ``load_dataset("imagefolder")`` of Hugging Face ``datasets`` reads them."""
