import type { Timeline } from 'adk-stream-protocol/client'
import { ChevronDown, ChevronUp } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'

import { IconButton } from '../../icon-button.tsx'
import type { ModelCallSource } from '../entry-details.tsx'
import { ScrolledText } from '../parts.tsx'
import { findRecordedCalls, Instructions } from './instructions.tsx'
import { useSessionLabels } from './labels.ts'
import {
  countTokens,
  StoredSession,
  summarizeEvent,
  toShortJson,
  type StoredEvent,
} from './stored-session.ts'

interface SessionPanelProps {
  readonly api: ModelCallSource['api']
  readonly chatId: string
  /** The session is read again when the timeline changes. */
  readonly timeline: Timeline | undefined
}

/** The session of the chat as ADK stores it: its state, its tokens, and its events step by step. */
export function SessionPanel({ api, chatId, timeline }: SessionPanelProps) {
  const labels = useSessionLabels()
  const loading = useSession(chatId, timeline)
  switch (loading.state) {
    case 'loading':
      return <p role="status">{labels.loading}</p>
    case 'missing':
      return <p className="inspector-empty">{labels.empty}</p>
    case 'failed':
      return <p role="alert">{labels.unreadable}</p>
    case 'ready':
      return <SessionView session={loading.session} timeline={timeline} source={{ api, chatId }} />
  }
}

interface SessionViewProps extends Pick<SessionPanelProps, 'timeline'> {
  readonly session: StoredSession
  readonly source: ModelCallSource
}

function SessionView({ session, timeline, source }: SessionViewProps) {
  const labels = useSessionLabels()
  const calls = findRecordedCalls(timeline)
  const { state, events } = session
  const { input, output } = countTokens(events)
  const format = new Intl.NumberFormat(labels.locale)
  return (
    <>
      <section>
        <p>{labels.tokens(format.format(input), format.format(output))}</p>
        <button type="button" className="inspector-more" onClick={() => saveSession(session)}>
          {labels.save}
        </button>
      </section>
      <section>
        <h3>{labels.state}</h3>
        {Object.keys(state).length === 0 ? (
          <p className="inspector-empty">{labels.noState}</p>
        ) : (
          <ScrolledText>{toShortJson(state)}</ScrolledText>
        )}
      </section>
      {calls.length > 1 && <Instructions calls={calls} source={source} />}
      <Events events={events} />
    </>
  )
}

/**
 * One event at a time is open. The buttons move to the one before or after it. At an end they keep the focus, which a disabled button would
 * lose.
 */
function Events({ events }: { readonly events: readonly StoredEvent[] }) {
  const labels = useSessionLabels()
  const [open, setOpen] = useState<string>()
  const listRef = useRef<HTMLOListElement>(null)
  const at = events.findIndex(({ id }) => id === open)
  const move = (to: number): void => {
    const event = events[to]
    if (!event) return
    setOpen(event.id)
    listRef.current?.children[to]?.scrollIntoView({ block: 'nearest' })
  }
  return (
    <section>
      <header className="session-events-head">
        <h3>{labels.events}</h3>
        <p role="status">{labels.position(at + 1, events.length)}</p>
        <IconButton
          icon={ChevronUp}
          label={labels.previous}
          aria-disabled={at <= 0}
          onClick={() => move(at - 1)}
        />
        <IconButton
          icon={ChevronDown}
          label={labels.next}
          aria-disabled={at >= events.length - 1}
          onClick={() => move(at + 1)}
        />
      </header>
      <ol className="session-events" ref={listRef}>
        {events.map((event) => (
          <li key={event.id}>
            <EventView
              event={event}
              isOpen={event.id === open}
              onToggle={(isOpen) => {
                if (isOpen) setOpen(event.id)
                else if (event.id === open) setOpen(undefined)
              }}
            />
          </li>
        ))}
      </ol>
    </section>
  )
}

interface EventViewProps {
  readonly event: StoredEvent
  readonly isOpen: boolean
  readonly onToggle: (isOpen: boolean) => void
}

function EventView({ event, isOpen, onToggle }: EventViewProps) {
  const labels = useSessionLabels()
  const { text, calls, responses } = summarizeEvent(event)
  const facts = [
    calls.length > 0 && labels.call(calls.join(', ')),
    responses.length > 0 && labels.response(responses.join(', ')),
  ].filter((fact) => fact !== false)
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => onToggle(currentTarget.open)}>
      <summary>
        <time dateTime={new Date(event.timestamp).toISOString()}>
          {new Date(event.timestamp).toLocaleTimeString(labels.locale)}
        </time>{' '}
        <strong>{event.author}</strong>{' '}
        <span dir="auto">{[...facts, text.slice(0, 80)].join(' ')}</span>
      </summary>
      {isOpen && <ScrolledText>{toShortJson(event)}</ScrolledText>}
    </details>
  )
}

function saveSession(session: StoredSession): void {
  const file = new Blob([JSON.stringify(session, undefined, 2)], { type: 'application/json' })
  const url = URL.createObjectURL(file)
  const link = document.createElement('a')
  link.href = url
  link.download = `session-${session.id}.json`
  link.click()
  URL.revokeObjectURL(url)
}

type Loading =
  | { readonly state: 'loading' | 'missing' | 'failed' }
  | { readonly state: 'ready'; readonly session: StoredSession }

/** Reads the session, and reads it again when something has happened in the chat. */
function useSession(chatId: string, timeline: Timeline | undefined): Loading {
  const [loading, setLoading] = useState<Loading>({ state: 'loading' })
  const version = JSON.stringify(
    timeline?.entries.map(({ id, endedAt }) => [id, endedAt]) ?? 'not loaded',
  )
  useEffect(() => {
    let isCurrent = true
    const load = async (): Promise<void> => {
      const next = await readSession(chatId)
      if (isCurrent) setLoading(next)
    }
    void load()
    return () => {
      isCurrent = false
    }
    // oxlint-disable-next-line react/exhaustive-effect-dependencies -- another version is another session
  }, [chatId, version])
  return loading
}

async function readSession(chatId: string): Promise<Loading> {
  try {
    const response = await fetch(`/chats/${encodeURIComponent(chatId)}/session`)
    if (response.status === 404) return { state: 'missing' }
    const session = StoredSession.safeParse(await response.json()).data
    return session ? { state: 'ready', session } : { state: 'failed' }
  } catch {
    // The server cannot be reached. The panel says so, and reads again with the next change.
    return { state: 'failed' }
  }
}
