import type { FileUIPart } from 'ai'
import { useState } from 'react'

import { usePictures } from '../attachments/use-pictures.ts'

/** A message to send: text, pictures, or both. */
export interface Draft {
  readonly text: string
  readonly files: FileUIPart[]
}

/** The message that is being written. */
export function useDraft() {
  const [text, setText] = useState('')
  const pictures = usePictures()
  return {
    text,
    setText,
    pictures,
    isEmpty: text.trim() === '' && pictures.held.length === 0,
    /** Returns the draft and clears it. */
    take: (): Draft => {
      setText('')
      return { text: text.trim(), files: pictures.take() }
    },
  }
}
