import type { Timeline } from 'adk-stream-protocol/client'
import { ChevronDown, ChevronUp, Download } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'

import { IconButton } from '../../icon-button.tsx'
import { estimateCost, formatCost, type Tariff } from '../cost.ts'
import type { ModelCallSource } from '../entry-details.tsx'
import { ScrolledText } from '../parts.tsx'
import { Artifacts } from './artifacts.tsx'
import { ImportSession } from './import-session.tsx'
import { findRecordedCalls, Instructions } from './instructions.tsx'
import { useSessionLabels } from './labels.ts'
import { type Loading, readSession } from './session-api.ts'
import { StateEditor } from './state-editor.tsx'
import {
  countTokens,
  readModelCalls,
  type StoredSession,
  summarizeEvent,
  toShortJson,
  type StoredEvent,
} from './stored-session.ts'

interface SessionPanelProps {
  readonly api: ModelCallSource['api']
  readonly chatId: string
  /** The session is read again when the timeline changes. */
  readonly timeline: Timeline | undefined
  readonly tariff: Tariff
  /** Opens another chat. */
  readonly onOpenChat: (chatId: string) => void
}

/** The session of the chat as ADK stores it: its state, its tokens, and its events step by step. */
export function SessionPanel(props: SessionPanelProps) {
  const { api, chatId, timeline, tariff, onOpenChat } = props
  const labels = useSessionLabels()
  const [changes, setChanges] = useState(0)
  const entries = timeline?.entries.map(({ id, endedAt }) => [id, endedAt]) ?? 'not loaded'
  const version = JSON.stringify([changes, entries])
  const loading = useSession(chatId, version)
  switch (loading.state) {
    case 'loading':
      return <p role="status">{labels.loading}</p>
    case 'missing':
      return (
        <section className="recording">
          <p className="inspector-empty">{labels.empty}</p>
          <ImportSession onImported={onOpenChat} />
        </section>
      )
    case 'failed':
      return <p role="alert">{labels.unreadable}</p>
    case 'ready':
      return (
        <SessionView
          session={loading.session}
          source={{ api, chatId }}
          onChanged={() => setChanges(changes + 1)}
          {...{ timeline, tariff, version, onOpenChat }}
        />
      )
  }
}

interface SessionViewProps extends Pick<SessionPanelProps, 'timeline' | 'tariff' | 'onOpenChat'> {
  readonly session: StoredSession
  readonly source: ModelCallSource
  /** Another value means that something has happened in the chat. */
  readonly version: string
  /** Called when this panel has changed the session. */
  readonly onChanged: () => void
}

function SessionView(props: SessionViewProps) {
  const { session, timeline, source, tariff, version, onChanged, onOpenChat } = props
  const labels = useSessionLabels()
  const calls = findRecordedCalls(timeline)
  const { state, events } = session
  const { chatId } = source
  return (
    <>
      <section className="recording">
        <Totals events={events} tariff={tariff} />
        <button type="button" onClick={() => saveSession(session)}>
          <Download size={16} aria-hidden="true" />
          {labels.save}
        </button>
        <ImportSession onImported={onOpenChat} />
      </section>
      <StateEditor {...{ chatId, state }} onSaved={onChanged} />
      <Artifacts {...{ chatId, version }} />
      {calls.length > 1 && <Instructions calls={calls} source={source} />}
      <Events events={events} />
    </>
  )
}

/** The tokens of the whole chat, and an estimate of their cost. */
function Totals({ events, tariff }: Pick<StoredSession, 'events'> & { readonly tariff: Tariff }) {
  const labels = useSessionLabels()
  const { input, output } = countTokens(events)
  const cost = estimateCost(readModelCalls(events), tariff)
  const format = new Intl.NumberFormat(labels.locale)
  return (
    <p>
      {labels.tokens(format.format(input), format.format(output))}
      {cost !== undefined && <> {formatCost(cost, labels.locale)}</>}
    </p>
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

/** Reads the session, and reads it again when something has happened in the chat. */
function useSession(chatId: string, version: string): Loading {
  const [loading, setLoading] = useState<Loading>({ state: 'loading' })
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
