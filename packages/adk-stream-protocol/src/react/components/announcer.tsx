import type { UIMessage } from 'ai'
import { type RefObject, useEffect, useRef, useState } from 'react'

import { useAdkLabels } from '../provider.tsx'

interface AnnouncerProps {
  /** The element that shows the conversation. */
  readonly logRef: RefObject<HTMLElement | null>
  readonly messages: readonly UIMessage[]
  /** The ids of the approvals that wait for this person. */
  readonly undecided: readonly string[]
  /** Whether a reply is being streamed. */
  readonly busy: boolean
  /** While it is on, the person hears the replies, and `VoiceStage` says what waits for them. */
  readonly voice: { readonly state: { readonly state: string } } | undefined
}

/** How long an announcement stays, in ms. Later it would only be a second copy of the reply for people who read the page. */
const SHOWN_MS = 10_000

/** What was announced: how much of the newest message, and which approvals. */
interface Announced {
  readonly busy: boolean
  readonly messageId: string | undefined
  readonly elements: number
  readonly approvals: readonly string[]
}

/**
 * Announces each reply when it is complete, and each approval or question when it appears. The conversation itself is not a live region: a
 * screen reader would read every chunk, or with `aria-busy` nothing, because it drops what changes meanwhile (NVDA 2026.1).
 */
export function Announcer({ logRef, messages, undecided, busy, voice }: AnnouncerProps) {
  const { message: labels } = useAdkLabels()
  const [text, setText] = useState('')
  const last = messages.at(-1)
  const announced = useRef<Announced>(undefined)
  useEffect(() => {
    const log = logRef.current
    if (!log) return
    const reply = last?.role === 'assistant' ? findReply(log, last.id) : []
    const news = findNews(announced.current, {
      busy,
      messageId: last?.id,
      elements: reply.length,
      approvals: undecided,
    })
    announced.current = news.announced
    if (voice && voice.state.state !== 'off') return setText('')
    const added = reply.slice(news.firstElement).map(({ innerText }) => innerText)
    const said = added.join(' ').trim()
    const cards = news.approvals.map((id) => describeCard(log, id))
    const sentences = [said && `${labels.assistant}: ${said}`, ...cards].filter(Boolean)
    if (sentences.length > 0 || busy || news.isDecided) setText(sentences.join(' '))
    // Runs when a reply starts or ends and when an approval appears or is decided, not for each chunk.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [busy, last?.id, undecided.join(' ')])
  useEffect(() => {
    if (text === '') return
    const timer = setTimeout(() => setText(''), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <div className="adk-hidden" aria-live="polite">
      {text}
    </div>
  )
}

interface News {
  readonly announced: Announced
  /** The first element of the reply to announce. */
  readonly firstElement: number
  /** The approvals to announce. */
  readonly approvals: readonly string[]
  /** Whether an approval that was announced does not wait for the person any more. */
  readonly isDecided: boolean
}

/** Returns what is shown now and was not announced. A reply is announced when it is complete, or when it waits for the person. */
function findNews(known: Announced | undefined, shown: Announced): News {
  const approvals = shown.approvals.filter((id) => !known?.approvals.includes(id))
  const before = known && known.messageId === shown.messageId ? known.elements : 0
  const isComplete = !shown.busy && (known === undefined || known.busy)
  const isAnnounced = isComplete || approvals.length > 0
  return {
    announced: { ...shown, elements: isAnnounced ? shown.elements : before },
    // What was there when the page was opened is no news. What waits for the person is.
    firstElement: known && isAnnounced ? before : shown.elements,
    approvals,
    isDecided: known?.approvals.some((id) => !shown.approvals.includes(id)) === true,
  }
}

/** Returns what a reply shows, without calls, reasoning, sources and actions. */
function findReply(log: Element, messageId: string): HTMLElement[] {
  const articles = [...log.querySelectorAll<HTMLElement>('[data-message]')]
  const article = articles.find(({ dataset }) => dataset['message'] === messageId)
  const selector = ':scope > :not(h2, footer, details, .adk-sources, .adk-tool)'
  return [...(article?.querySelectorAll<HTMLElement>(selector) ?? [])]
}

/** Returns the name of a card, its severity, and what it waits for. */
function describeCard(log: Element, approvalId: string): string {
  const cards = [...log.querySelectorAll<HTMLElement>('[data-approval]')]
  const card = cards.find(({ dataset }) => dataset['approval'] === approvalId)
  const severity = card?.querySelector('.adk-severity')?.textContent
  const status = card?.querySelector('.adk-ending [role=status]')?.textContent
  return [status, card?.getAttribute('aria-label'), severity].filter(Boolean).join(' ')
}
