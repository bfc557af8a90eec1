import type { FileUIPart } from 'ai'
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react'

import { isBusy } from '../../client/sync/attachable-chat.ts'
import { useLatest } from '../use-stable.ts'

/**
 * A message of the person.
 *
 * @inline
 */
interface ComposedMessage {
  readonly text: string
  readonly files: FileUIPart[]
}

/**
 * A message that is sent when the reply has ended.
 *
 * @inline
 */
export interface QueuedMessage extends ComposedMessage {
  readonly id: number
}

/**
 * Options of `useComposer`.
 *
 * @inline
 */
export interface UseComposerOptions {
  /** The `status` of `useAdkChat` or `useChat`. Default `ready`. */
  readonly status?: string | undefined
  /** Sends a message, for example with `sendMessage` of `useAdkChat`. */
  readonly onSend: (message: ComposedMessage) => void
  /** Stops the reply. Without it, there is no stop button. */
  readonly onStop?: (() => void) | undefined
  /** Sends text during a reply and interrupts it, as `sendText` of `webSocketTransport` does in a live chat. Without it, messages are queued. */
  readonly onInterrupt?: ((text: string) => void) | undefined
  /**
   * Stores the unsent text in `localStorage` under this key, for example `draftKey` of `useAdkChat`. The newest 30 drafts are kept. Text that
   * is written before there is a key is stored as soon as there is one.
   */
  readonly draftKey?: string | undefined
  /** The files of the draft, if the page can attach files. */
  readonly files?: ComposerFiles | undefined
}

interface ComposerFiles {
  readonly count: number
  /** Returns the files and removes them from the draft. */
  readonly take: () => FileUIPart[]
  /** Adds the files of a queued message to the draft again. */
  readonly restore: (files: FileUIPart[]) => void
}

interface Draft {
  readonly text: string
  readonly queue: readonly QueuedMessage[]
}

const EMPTY: Draft = { text: '', queue: [] }

/** The message that a person writes. During a reply, a message is queued or interrupts the reply. Drafts survive a reload. */
export function useComposer(options: UseComposerOptions) {
  const { status = 'ready', onSend, onStop, onInterrupt, draftKey, files } = options
  const inputRef = useRef<HTMLTextAreaElement>(null)
  const { draft, update } = useStoredDraft(draftKey)
  const nextId = useRef(0)
  const isRunning = isBusy({ status })
  const isEmpty = draft.text.trim() === '' && (files?.count ?? 0) === 0
  const focus = useCallback(() => inputRef.current?.focus(), [])
  useSendQueued(draft.queue, status, (message) => {
    update(({ text, queue }) => ({ text, queue: queue.filter(({ id }) => id !== message.id) }))
    onSend({ text: message.text, files: message.files })
  })
  const unqueue = (taken: readonly QueuedMessage[]): void => {
    if (taken.length === 0) return
    files?.restore(taken.flatMap((message) => message.files))
    update(({ text, queue }) => ({
      text: joinTexts([...taken.map((message) => message.text), text]),
      queue: queue.filter((message) => !taken.includes(message)),
    }))
    focus()
  }
  return {
    inputRef,
    focus,
    text: draft.text,
    setText: (text: string) => update(({ queue }) => ({ text, queue })),
    /** Appends a paragraph to the text and moves the focus to the input. */
    write: (added: string) => {
      update(({ text, queue }) => ({ text: joinTexts([text, added]), queue }))
      focus()
    },
    isEmpty,
    /** Whether a reply is running. */
    isRunning,
    /** Messages that are sent when the reply has ended. */
    queue: draft.queue,
    /** Moves a queued message back to the input. Without an id, the newest one. */
    unqueue: (id?: number) =>
      unqueue(
        id === undefined ? draft.queue.slice(-1) : draft.queue.filter((each) => each.id === id),
      ),
    /** Sends the message, or queues it during a reply. */
    submit: () => {
      if (isEmpty) return
      const message = { text: draft.text.trim(), files: files?.take() ?? [] }
      if (isRunning && (!onInterrupt || message.files.length > 0)) {
        nextId.current += 1
        const queued = { ...message, id: nextId.current }
        return update(({ queue }) => ({ text: '', queue: [...queue, queued] }))
      }
      update(({ queue }) => ({ text: '', queue }))
      if (isRunning) onInterrupt?.(message.text)
      else onSend(message)
    },
    /** Stops the reply. Sends nothing: queued messages return to the input. */
    stop: () => {
      unqueue(draft.queue)
      onStop?.()
      focus()
    },
  }
}

function joinTexts(texts: readonly string[]): string {
  return texts.filter((text) => text.trim() !== '').join('\n')
}

/** The draft in the storage contains the queued messages too. They are text again after a reload. */
function useStoredDraft(key: string | undefined) {
  const [shown, setShown] = useState({ key, draft: EMPTY })
  const latest = useRef(EMPTY)
  const shownKey = useRef(key)
  const update = useCallback(
    (change: (before: Draft) => Draft): void => {
      const draft = change(latest.current)
      latest.current = draft
      setShown({ key, draft })
      const texts = [...draft.queue.map((each) => each.text), draft.text]
      if (key !== undefined) storeDraft(key, joinTexts(texts))
    },
    [key],
  )
  // Not the initial state: a page that is rendered on a server has no storage.
  useLayoutEffect(() => {
    const stored = key === undefined ? '' : readDraft(key)
    if (shownKey.current === undefined && latest.current !== EMPTY)
      update(({ text, queue }) => ({ text: joinTexts([stored, text]), queue }))
    else {
      latest.current = stored === '' ? EMPTY : { text: stored, queue: [] }
      setShown({ key, draft: latest.current })
    }
    shownKey.current = key
  }, [key, update])
  // The queue of one chat must not be sent in another. A draft without a key moves under the first one.
  const isOwn = shown.key === key || shown.key === undefined
  return { draft: isOwn ? shown.draft : EMPTY, update }
}

/** Sends the queued messages one after the other, each when the reply before it has ended. After an error, they wait. */
function useSendQueued(
  queue: readonly QueuedMessage[],
  status: string,
  send: (message: QueuedMessage) => void,
): void {
  const latestSend = useLatest(send)
  const isSending = useRef(false)
  const [next] = queue
  useEffect(() => {
    // The reply to a message starts some time after the message was sent.
    if (status !== 'ready') isSending.current = false
    else if (next && !isSending.current) {
      isSending.current = true
      latestSend.current(next)
    }
  }, [next, status, latestSend])
  const isEmpty = next === undefined
  useEffect(() => {
    if (isEmpty) isSending.current = false
  }, [isEmpty])
}

/** The newest drafts are kept. Older ones are removed. */
const MAX_DRAFTS = 30
/** A longer draft is not stored. */
const MAX_LENGTH = 50_000
const PREFIX = 'adk-draft:'

interface StoredDraft {
  readonly text: string
  /** When it was stored, in ms since 1970. */
  readonly at: number
}

/** Returns the stored draft, or an empty text. */
function readDraft(key: string): string {
  return attempt(() => parse(localStorage.getItem(PREFIX + key))?.text) ?? ''
}

/** Stores a draft in this browser. An empty text removes it. A draft that cannot be stored is lost when the page is closed. */
function storeDraft(key: string, text: string): void {
  attempt(() => {
    if (text.trim() === '' || text.length > MAX_LENGTH) return localStorage.removeItem(PREFIX + key)
    const isNew = localStorage.getItem(PREFIX + key) === null
    localStorage.setItem(
      PREFIX + key,
      JSON.stringify({ text, at: Date.now() } satisfies StoredDraft),
    )
    if (isNew) removeOldest()
  })
}

function removeOldest(): void {
  const drafts = Object.keys(localStorage)
    .filter((key) => key.startsWith(PREFIX))
    .map((key) => ({ key, at: parse(localStorage.getItem(key))?.at ?? 0 }))
    .toSorted((one, other) => other.at - one.at)
  for (const { key } of drafts.slice(MAX_DRAFTS)) localStorage.removeItem(key)
}

function parse(stored: string | null): StoredDraft | undefined {
  if (stored === null) return undefined
  const value: unknown = JSON.parse(stored)
  const isDraft =
    typeof value === 'object' && value !== null && 'text' in value && typeof value.text === 'string'
  if (!isDraft) return undefined
  return { text: value.text as string, at: 'at' in value ? Number(value.at) : 0 }
}

/** The storage may be full or blocked, or may contain anything. */
function attempt<Value>(work: () => Value): Value | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
