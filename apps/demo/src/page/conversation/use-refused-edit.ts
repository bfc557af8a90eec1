import type { Problem } from 'adk-stream-protocol/react'
import type { UIMessage } from 'ai'
import { useCallback, useEffect, useRef } from 'react'

import { toMarkdown } from '../message-actions/to-markdown.ts'

interface Shown {
  readonly messages: readonly UIMessage[]
  readonly problem: Problem | undefined
}

type Edit = (message: UIMessage, text: string) => void

/** Gives back the text of an edit that the server refused, when the message has its old text again. */
export function useRefusedEdit(
  { messages, problem }: Shown,
  edit: Edit,
  giveBack: (text: string) => void,
): Edit {
  const sent = useRef<string | undefined>(undefined)
  const isRefused = problem?.kind === 'refused'
  useEffect(() => {
    const text = sent.current
    if (!isRefused || text === undefined) return
    if (messages.some((message) => message.role === 'user' && toMarkdown(message) === text)) return
    sent.current = undefined
    giveBack(text)
  }, [isRefused, messages, giveBack])
  return useCallback(
    (message, text) => {
      sent.current = text.trim()
      edit(message, text)
    },
    [edit],
  )
}
