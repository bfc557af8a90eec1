import type { FileUIPart } from 'ai'
import { useState } from 'react'

import { usePictures } from '../attachments/use-pictures.ts'

/** What is said: a text, pictures, or both. */
export interface Draft {
  readonly text: string
  readonly files: FileUIPart[]
}

/** What is being written. */
export function useDraft() {
  const [text, setText] = useState('')
  const pictures = usePictures()
  return {
    text,
    setText,
    pictures,
    isEmpty: text.trim() === '' && pictures.held.length === 0,
    /** Takes the draft away, to be sent. */
    take: (): Draft => {
      setText('')
      return { text: text.trim(), files: pictures.take() }
    },
  }
}
