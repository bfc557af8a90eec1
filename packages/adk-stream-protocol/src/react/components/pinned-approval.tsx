import { type RefObject, useEffect, useLayoutEffect, useState } from 'react'

import type { AdkChat } from '../hooks/use-adk-chat.ts'
import { useAdkLabels, useCallDescription } from '../provider.tsx'
import type { UndecidedCall } from '../reading/approval.ts'
import { getArguments, getToolName } from '../reading/call.ts'
import { raiseShownSeverity } from '../reading/risk.ts'
import { LiteralText } from './call-details.tsx'
import { ApprovalForm, EMPTY_DRAFT, useApprovalKeys } from './approval-form.tsx'
import { RefusalNote, SeverityMark } from './approval-parts.tsx'
import { useShownPreview, PreviewView } from './call-preview.tsx'

/** What a chat knows about decisions, as `useAdkChat` returns it. */
export type DecidableChat = Pick<
  AdkChat,
  'decide' | 'refusals' | 'votes' | 'details' | 'unconfirmed' | 'waitingDecisions'
>

interface PinnedApprovalProps {
  readonly undecided: UndecidedCall
  /** How many approvals are pending. */
  readonly count: number
  readonly chat: DecidableChat
  /** Called when it disappears while it has the focus. Pass a stable function. */
  readonly onGone: () => void
}

/** A pending approval whose card is out of view: what the call would do, and the form to decide it. */
export function PinnedApproval(props: PinnedApprovalProps) {
  const { approvalId } = props.undecided.approval
  const pinRef = useApprovalKeys<HTMLDivElement>()
  const isInView = useIsInView(approvalId, pinRef)
  useFocusWhenGone(pinRef, props.onGone)
  return (
    <div className="adk-pinned-frame" ref={pinRef}>
      {!isInView && <Pinned {...props} />}
    </div>
  )
}

function Pinned({ undecided: { call, approval }, count, chat }: PinnedApprovalProps) {
  const { voice: labels } = useAdkLabels()
  const [draft, setDraft] = useState(EMPTY_DRAFT)
  const { approvalId } = approval
  const args = getArguments(call)
  const refusal = chat.refusals.get(approvalId)
  const { preview, seen, decide } = useShownPreview(
    approval.preview,
    refusal,
    (decision) => void chat.decide(approvalId, decision),
  )
  const { description } = useCallDescription(getToolName(call), args, {
    phase: 'pending',
    headline: preview?.headline,
  })
  const shown = raiseShownSeverity(approval, args, description)
  const { severity } = shown
  return (
    <section className="adk-pinned" data-severity={severity} aria-label={labels.pinned(count)}>
      <header className="adk-pinned-header">
        <span className="adk-pinned-count">{labels.pinned(count)}</span>
        <SeverityMark severity={severity} />
        <button type="button" className="adk-link" onClick={() => showCard(approvalId)}>
          {labels.showCard}
        </button>
      </header>
      <LiteralText in="p" className="adk-call-description" text={description} values={args} />
      {preview && <PreviewView preview={preview} seen={seen} />}
      {/* The form of a question, and a sign-in, have no room here. */}
      {approval.kind === undefined && (
        <ApprovalForm
          {...{ preview, draft }}
          approval={shown}
          editable={false}
          hidden={false}
          onDraft={setDraft}
          onDecide={decide}
        />
      )}
      <RefusalNote refusal={refusal} />
    </section>
  )
}

function findCard(approvalId: string): HTMLElement | undefined {
  const cards = document.querySelectorAll<HTMLElement>('.adk-messages [data-approval]')
  return [...cards].find((card) => card.dataset['approval'] === approvalId)
}

/** Moves to the card: its first control gets the focus. */
function showCard(approvalId: string): void {
  const card = findCard(approvalId)
  card?.scrollIntoView({ block: 'end' })
  const control = card?.querySelector<HTMLElement>('[aria-keyshortcuts="a"], input, button')
  ;(control ?? card)?.focus()
}

/** Where the observer reports: often enough for the buttons of a high card. */
const THRESHOLDS = Array.from({ length: 41 }, (_none, index) => index / 40)
const BUTTONS_PX = 64

/** Returns whether the end of a card, with its buttons, is in view. The element of `pinRef` stays while it has the focus. */
function useIsInView(approvalId: string, pinRef: RefObject<HTMLElement | null>): boolean {
  // Until the browser has reported where the card is, nothing is pinned, so that the page does not jump.
  const [isInView, setInView] = useState(true)
  useEffect(() => {
    // React may render the card together with this component, so that it can be found only now.
    const card = findCard(approvalId)
    // oxlint-disable-next-line react/set-state-in-effect
    if (!card || typeof IntersectionObserver === 'undefined') return setInView(card !== undefined)
    const observer = new IntersectionObserver(
      (entries) => {
        const entry = entries.at(-1)
        if (!entry) return
        const { boundingClientRect: whole, intersectionRect: visible } = entry
        const isEndVisible =
          visible.height >= Math.min(BUTTONS_PX, whole.height) && visible.bottom > whole.bottom - 12
        const isUsed = pinRef.current?.contains(document.activeElement) === true
        if (!(isEndVisible && isUsed)) setInView(isEndVisible)
      },
      { threshold: THRESHOLDS },
    )
    observer.observe(card)
    return () => observer.disconnect()
  }, [approvalId, pinRef])
  return isInView
}

/** Calls the function before the element is removed while it has the focus, which would otherwise be lost. */
function useFocusWhenGone(ref: RefObject<HTMLElement | null>, onGone: () => void): void {
  useLayoutEffect(() => {
    const element = ref.current
    return () => {
      if (element?.contains(document.activeElement)) onGone()
    }
  }, [ref, onGone])
}
