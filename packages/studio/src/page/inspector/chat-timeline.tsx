import type { AdkApi, Timeline } from 'adk-stream-protocol/client'
import { useEffect, useRef, useState } from 'react'

import { useDescribeCall } from '../plugin/use-describe-call.ts'
import { useLabels } from '../i18n/language.tsx'
import type { ApprovalEntry } from './approval-picture.tsx'
import { estimateCost, formatCost, type Tariff } from './cost.ts'
import { formatMs, formatTime } from './format.ts'
import {
  EntryDetails,
  type ModelCallSource,
  ModelCallView,
  NetworkDetails,
} from './entry-details.tsx'
import { inspection, type ChatPlace } from './inspection.ts'
import { NoticeLog } from './notice-log.tsx'
import { useInspectorLabels, ScrolledText, useNow } from './parts.tsx'
import { type TimeScale, arrangeTimeline, LANES, type Row, type TurnRows } from './timeline-rows.ts'
import type { TurnTrace } from './trace.ts'
import { useValue } from '../observable-value.ts'

export interface ChatTimelineProps {
  readonly timeline: Timeline
  /** How far the clock of the server is ahead of that of this device, in milliseconds. */
  readonly clockOffset: number
  /** The streams of this page. */
  readonly streams: readonly TurnTrace[]
  /** Without the price of a model, the cost of its turn is not shown. */
  readonly tariff: Tariff
  /** Reads what the model was asked. */
  readonly api: Pick<AdkApi, 'readModelCall' | 'listNotices'>
  readonly onEarlier: () => void
}

/** What happened in the chat, from the server's record: one axis for all turns, and each turn with its entries. */
export function ChatTimeline(props: ChatTimelineProps) {
  const { timeline, clockOffset, streams, tariff, api, onEarlier } = props
  const labels = useInspectorLabels()
  const isOpen = timeline.entries.some(
    ({ type, endedAt }) => endedAt === undefined && type === 'turn',
  )
  const now = useNow(isOpen)
  const { turns, scale } = arrangeTimeline(timeline, streams, now + clockOffset)
  const { reader, chatId } = timeline
  const source = { api, chatId }
  const [selected, setSelected] = useState<string>()
  useInspected(turns, setSelected)
  if (turns.length === 0) return <p className="inspector-empty">{labels.noTurns}</p>
  return (
    <>
      <Overview {...{ turns, scale }} onSelect={setSelected} />
      <ol className="chat-turns" reversed>
        {turns.toReversed().map((turn) => (
          <li key={turn.messageId}>
            <TurnView {...{ turn, tariff, selected, reader }} source={source} />
          </li>
        ))}
      </ol>
      {timeline.next !== undefined && (
        <button type="button" className="inspector-more" onClick={onEarlier}>
          {labels.earlier}
        </button>
      )}
      {timeline.state && Object.keys(timeline.state).length > 0 && (
        <details className="session-state">
          <summary>{labels.state}</summary>
          <ScrolledText>{JSON.stringify(timeline.state, undefined, 2)}</ScrolledText>
        </details>
      )}
    </>
  )
}

/** Follows the place in the conversation that was clicked, focused or asked for. */
function useInspected(turns: readonly TurnRows[], select: (id: string) => void): void {
  const inspected = useValue(inspection)
  const newest = useRef(turns)
  useEffect(() => {
    newest.current = turns
  })
  useEffect(() => {
    const id = inspected && findRow(newest.current, inspected.place)
    if (id === undefined) return
    select(id)
    if (inspected?.focus !== true) return
    inspection.settle()
    focusRow(id)
  }, [inspected, select])
}

/** Returns the id of the row about a call or a message. */
function findRow(turns: readonly TurnRows[], place: ChatPlace): string | undefined {
  const turn = turns.find(
    ({ messageId, turn: { id } }) => messageId === place.messageId || id === place.messageId,
  )
  const rows = turns.flatMap(({ rows: own }) => own)
  const row = rows.find(
    ({ entry }) =>
      place.toolCallId !== undefined &&
      entry &&
      'toolCallId' in entry &&
      entry.toolCallId === place.toolCallId,
  )
  return row?.id ?? turn?.turn.id
}

function focusRow(id: string): void {
  requestAnimationFrame(() => {
    const row = document.querySelector<HTMLElement>(`[data-row="${CSS.escape(id)}"] > summary`)
    row?.scrollIntoView({ block: 'center' })
    row?.focus({ preventScroll: true })
  })
}

interface OverviewProps {
  readonly turns: readonly TurnRows[]
  readonly scale: TimeScale
  readonly onSelect: (id: string) => void
}

/** All turns on one axis, with a lane for each kind of work. The list below contains the same data for the keyboard and screen readers. */
function Overview({ turns, scale, onSelect }: OverviewProps) {
  const labels = useInspectorLabels()
  const rows = turns.flatMap((turn) => turn.rows)
  const first = Math.min(...rows.map(({ from }) => from))
  const last = Math.max(...rows.map(({ from, to }) => to ?? from))
  return (
    <figure className="overview">
      <figcaption className="visually-hidden">{labels.overview}</figcaption>
      <div aria-hidden="true">
        {LANES.map((lane) => (
          <div className="overview-lane" key={lane}>
            <span className="overview-name">{labels.lanes[lane]}</span>
            <span className="track" data-lane={lane}>
              <Breaks scale={scale} />
              {rows
                .filter((row) => row.lane === lane)
                .map((row) => (
                  <Bar
                    key={row.id}
                    {...{ row, scale }}
                    onClick={() => {
                      onSelect(row.id)
                      focusRow(row.id)
                    }}
                  />
                ))}
            </span>
          </div>
        ))}
        <div className="overview-lane overview-times">
          <span className="overview-legend">
            {scale.breaks.length > 0 && (
              <>
                <span className="axis-break" />
                {labels.shortened}
              </>
            )}
          </span>
          <span>
            <time>{formatTime(first, labels)}</time>
            <time>{formatTime(last, labels)}</time>
          </span>
        </div>
      </div>
    </figure>
  )
}

function Breaks({ scale }: { readonly scale: TimeScale }) {
  return scale.breaks.map(({ at, width, ms }) => (
    <span
      key={at}
      className="axis-break"
      title={formatMs(ms)}
      style={{ insetInlineStart: percent(at), inlineSize: percent(width) }}
    />
  ))
}

interface BarProps {
  readonly row: Row
  readonly scale: TimeScale
  readonly onClick?: () => void
}

function Bar({ row, scale, onClick }: BarProps) {
  const { lane, from, to = from, isOpen, entry } = row
  const start = scale.position(from)
  const votes = entry?.type === 'approval' ? entry.votes : []
  return (
    <>
      {/* Not a button: the list contains the same entry for the keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions */}
      <span
        className="bar"
        data-lane={lane}
        data-open={isOpen}
        data-type={entry?.type}
        data-state={entry && 'state' in entry ? entry.state : undefined}
        onClick={onClick}
        style={{
          insetInlineStart: percent(start),
          inlineSize: percent(scale.position(to) - start),
        }}
      />
      {votes.map(({ by, at }) => (
        <span
          key={`${by} ${at}`}
          className="bar-vote"
          style={{ insetInlineStart: percent(scale.position(at)) }}
        />
      ))}
    </>
  )
}

interface TurnViewProps {
  readonly turn: TurnRows
  readonly reader: string | undefined
  readonly tariff: Tariff
  readonly source: ModelCallSource
  readonly selected: string | undefined
}

function TurnView({ turn: rowsOfTurn, tariff, source, selected, reader }: TurnViewProps) {
  const { turn, text, rows, messageId, scale } = rowsOfTurn
  const labels = useInspectorLabels()
  const cost = estimateCost(
    rows.flatMap(({ entry }) => (entry?.type === 'model' ? [entry] : [])),
    tariff,
  )
  return (
    <section className="chat-turn" aria-label={text === undefined ? labels.turn : text}>
      <details className="turn-head" data-row={turn.id} data-selected={selected === turn.id}>
        <summary>
          <span className="turn-text">{text || labels.turn}</span>
          <span className="turn-facts">
            <time dateTime={new Date(turn.at).toISOString()}>{formatTime(turn.at, labels)}</time>
            <span data-state={turn.state}>{labels.turnStates[turn.state]}</span>
            {turn.endedAt !== undefined && <span>{formatMs(turn.endedAt - turn.at)}</span>}
            {turn.usage && <span>{labels.tokens(turn.usage.totalTokens)}</span>}
            {cost !== undefined && (
              <span title={labels.estimate}>{formatCost(cost, labels.locale)}</span>
            )}
          </span>
        </summary>
        <EntryDetails entry={turn} place={{ messageId }} reader={reader} />
      </details>
      <ol className="turn-rows">
        {rows.map((row) => (
          <li key={row.id}>
            <RowView {...{ row, scale, reader, source }} isSelected={selected === row.id} />
          </li>
        ))}
      </ol>
    </section>
  )
}

interface RowViewProps {
  readonly row: Row
  readonly scale: TimeScale
  readonly source: ModelCallSource
  readonly reader: string | undefined
  readonly isSelected: boolean
}

function RowView({ row, scale, source, reader, isSelected }: RowViewProps) {
  const labels = useInspectorLabels()
  const name = useRowName(row)
  const { lane, from, to, isOpen, entry, trace } = row
  const took = to === undefined ? '' : formatMs(to - from)
  const messageId = entry?.messageId ?? trace?.messageId ?? ''
  const toolCallId = entry && 'toolCallId' in entry ? entry.toolCallId : undefined
  return (
    <details className="row" data-row={row.id} data-lane={lane} data-selected={isSelected}>
      <summary aria-current={isSelected ? 'true' : undefined}>
        <span className="row-name">
          <span className="row-mark" data-lane={lane} data-type={entry?.type} aria-hidden="true" />
          <span className="visually-hidden">{lane === 'moment' ? '' : labels.lanes[lane]} </span>
          <span className="row-text" title={name}>
            {name}
          </span>
        </span>
        <span className="track" aria-hidden="true">
          <Breaks scale={scale} />
          <Bar {...{ row, scale }} />
        </span>
        <span className="row-took">{isOpen ? `${took} +` : took}</span>
      </summary>
      {entry ? (
        <EntryDetails entry={entry} place={{ messageId, toolCallId }} reader={reader}>
          {entry.type === 'approval' && (
            <NoticeLog api={source.api} approvalId={entry.approvalId} />
          )}
          {entry.type === 'model' && entry.callId !== undefined && (
            <ModelCallView source={source} callId={entry.callId} />
          )}
        </EntryDetails>
      ) : (
        trace && <NetworkDetails trace={trace} />
      )}
    </details>
  )
}

/** Returns what a row is about, in words. */
function useRowName({ entry, trace }: Row): string {
  const labels = useInspectorLabels()
  const { toolNames } = useLabels()
  const describeCall = useDescribeCall()
  if (!entry) return labels.triggers[trace?.trigger ?? ''] ?? ''
  switch (entry.type) {
    case 'model':
      return entry.model ?? toolNames[entry.agent ?? ''] ?? entry.agent ?? labels.lanes.model
    case 'tool':
    case 'browser-tool':
      return entry.toolName
    case 'approval':
      return (
        describeCall(entry.toolName, entry.args, entry.state) ??
        entry.title ??
        readQuestion(entry) ??
        entry.toolName
      )
    case 'error':
      return entry.message
    case 'interruption':
      return labels.interruption
    case 'hand-over':
      return labels.handOver[entry.to](entry.name ?? '')
    case 'message':
    case 'turn':
      return ''
  }
}

/** Returns the question that ADK's `adk_request_input` asks. */
function readQuestion({ toolName, args }: Pick<ApprovalEntry, 'toolName' | 'args'>) {
  const { message } = args
  return toolName === 'adk_request_input' && typeof message === 'string' ? message : undefined
}

function percent(part: number): string {
  return `${part * 100}%`
}
