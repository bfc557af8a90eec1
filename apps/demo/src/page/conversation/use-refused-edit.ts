import type { Problem } from 'adk-stream-protocol/react'
import type { UIMessage } from 'ai'
import { useCallback, useEffect, useRef } from 'react'

import { toMarkdown } from '../message-actions/to-markdown.ts'

interface ShownChat {
  readonly messages: readonly UIMessage[]
  readonly problem: Problem | undefined
}

type Edit = (message: UIMessage, text: string) => void

/** Restores the text of an edit that the server refused, after the message has its old text again. */
export function useRefusedEdit(
  { messages, problem }: ShownChat,
  edit: Edit,
  restore: (text: string) => void,
): Edit {
  const sent = useRef<string | undefined>(undefined)
  const isRefused = problem?.kind === 'refused'
  useEffect(() => {
    const text = sent.current
    if (!isRefused || text === undefined) return
    if (messages.some((message) => message.role === 'user' && toMarkdown(message) === text)) return
    sent.current = undefined
    restore(text)
  }, [isRefused, messages, restore])
  return useCallback(
    (message, text) => {
      sent.current = text.trim()
      edit(message, text)
    },
    [edit],
  )
}
