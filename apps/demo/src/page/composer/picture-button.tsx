import { ImagePlus } from 'lucide-react'
import type { RefObject } from 'react'

import { PICTURE_TYPES } from '../attachments/check-picture.ts'
import { useLabels } from '../i18n/language.tsx'

interface PictureButtonProps {
  readonly chooserRef: RefObject<HTMLInputElement | null>
  readonly onChoose: (files: File[]) => void
  readonly onDone: () => void
}

/** Opens the file picker for pictures. */
export function PictureButton({ chooserRef, onChoose, onDone }: PictureButtonProps) {
  const { attach } = useLabels().shell.composer
  return (
    <>
      <button
        type="button"
        className="icon-button"
        aria-label={attach}
        title={attach}
        onClick={() => chooserRef.current?.click()}
      >
        <ImagePlus aria-hidden="true" />
      </button>
      <input
        ref={chooserRef}
        type="file"
        accept={PICTURE_TYPES.join(',')}
        multiple
        hidden
        aria-label={attach}
        onChange={(event) => {
          onChoose([...(event.target.files ?? [])])
          // Allows the same picture to be chosen again after it was removed.
          event.target.value = ''
          onDone()
        }}
      />
    </>
  )
}
