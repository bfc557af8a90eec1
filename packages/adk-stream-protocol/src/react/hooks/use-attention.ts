import { useEffect, useRef, useState } from 'react'

import type { PendingApproval } from '../../protocol/server-views.ts'
import { useAdkLabels, useDescribeCall } from '../provider.tsx'
import { toLiteral } from '../../shared/literal-text.ts'
import { isUndecided } from '../reading/approval.ts'
import { raiseShownSeverity } from '../reading/risk.ts'
import { useLatest } from '../use-stable.ts'

/**
 * Options of `useAttention`.
 *
 * @inline
 */
export interface UseAttentionOptions {
  /** The title of the page. The number of pending approvals is put before it. Default: the title is not changed. */
  readonly title?: string | undefined
  /** Whether more approvals are pending than `approvals` contains. The number in the title is then followed by `+`. Default false. */
  readonly hasMore?: boolean | undefined
  /** Whether a hidden page shows a browser notification. The page asks for the permission, in a click handler. Default false. */
  readonly notify?: boolean | undefined
  /** Whether a tone is played, for example during a voice conversation. Default false. */
  readonly sound?: boolean | undefined
  /** Called when the person clicks a notification. */
  readonly onOpen?: ((approval: PendingApproval) => void) | undefined
}

/**
 * Draws attention to pending approvals: by the number in the page's title and icon, by a browser notification while the page is
 * hidden, and by a tone. Pass `approvals` of `useInbox`, with `whileHidden` for notifications. Returns a sentence about the newest
 * approvals, to be shown in a live region, without those whose card `MessageList` shows and announces.
 */
export function useAttention(
  approvals: readonly PendingApproval[],
  options: UseAttentionOptions = {},
): string {
  const { title, hasMore = false } = options
  const labels = useAdkLabels()
  const describe = useDescribeCall()
  const undecided = approvals.filter(isUndecided)
  const count = undecided.length
  useEffect(() => {
    if (title === undefined) return
    const shown = toLiteral(title)
    document.title = count > 0 ? `(${count}${hasMore ? '+' : ''}) ${shown}` : shown
  }, [title, count, hasMore])
  useEffect(() => showIconCount(count), [count])
  const [announced, setAnnounced] = useState<readonly PendingApproval[]>([])
  const latest = useLatest({ ...options, labels, describe })
  const known = useRef<ReadonlySet<string>>(new Set())
  const ids = undecided.map(({ id }) => id).join(' ')
  useEffect(() => {
    const added = undecided.filter(({ id }) => !known.current.has(id))
    known.current = new Set(undecided.map(({ id }) => id))
    // A sentence is read again if any other one beside it changes, so it is removed with the first approval that is decided.
    setAnnounced((before) => {
      if (added.length > 0) return added.filter(({ id }) => !isShownInChat(id))
      return before.every(({ id }) => known.current.has(id)) ? before : []
    })
    if (added.length === 0) return
    if (latest.current.sound) playTone()
    if (latest.current.notify && document.visibilityState === 'hidden')
      for (const approval of added) notify(approval, latest.current)
    // The ids say whether the list has changed.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [ids, latest])
  const { attention, approval: approvalLabels } = labels
  return announced
    .map((approval) => {
      const { requestedAt, deadline, args } = approval
      const action = describe(approval.toolName, args, approval.preview?.headline)
      const { severity } = raiseShownSeverity(approval, args, action)
      return attention.needed({
        action,
        severity: severity && approvalLabels.severity[severity],
        // Not the time that is left: the sentence must not change every minute.
        minutes: Math.round((deadline - requestedAt) / 60_000),
      })
    })
    .join(' ')
}

/** Whether `MessageList` shows the card of an approval, and so announces it. */
function isShownInChat(approvalId: string): boolean {
  const cards = document.querySelectorAll<HTMLElement>('.adk-messages [data-approval]')
  const card = [...cards].find(({ dataset }) => dataset['approval'] === approvalId)
  return card !== undefined && card.closest('[hidden]') === null
}

interface NotifyOptions extends UseAttentionOptions {
  readonly labels: ReturnType<typeof useAdkLabels>
  readonly describe: ReturnType<typeof useDescribeCall>
}

/** A browser may have no notifications, or only those of a service worker. The title and the icon show the approval anyway. */
function notify(approval: PendingApproval, { labels, describe, onOpen }: NotifyOptions): void {
  if (typeof Notification === 'undefined' || Notification.permission !== 'granted') return
  try {
    const notification = new Notification(labels.attention.title, {
      body: describe(approval.toolName, approval.args, approval.preview?.headline),
      // Several tabs show it once.
      tag: approval.id,
      lang: labels.locale,
    })
    notification.addEventListener('click', () => {
      window.focus()
      notification.close()
      onOpen?.(approval)
    })
  } catch {
    // Chrome on Android throws.
  }
}

/** The width and height of the drawn icon, in pixels. */
const ICON_SIZE = 64

/** Draws a number on the page's icon. Returns a function that restores the icon. Does nothing for 0, or if the page has no icon. */
function showIconCount(count: number): (() => void) | undefined {
  const link = document.querySelector<HTMLLinkElement>('link[rel~="icon"]')
  if (count === 0 || !link) return undefined
  const original = link.getAttribute('href') ?? ''
  let isOver = false
  const icon = new Image(ICON_SIZE, ICON_SIZE)
  icon.addEventListener('load', () => {
    const drawn = isOver ? undefined : drawCount(icon, count)
    if (drawn !== undefined) link.href = drawn
  })
  icon.src = original
  return () => {
    isOver = true
    link.setAttribute('href', original)
  }
}

function drawCount(icon: HTMLImageElement, count: number): string | undefined {
  const canvas = document.createElement('canvas')
  canvas.width = ICON_SIZE
  canvas.height = ICON_SIZE
  const context = canvas.getContext('2d')
  if (!context) return undefined
  context.drawImage(icon, 0, 0, ICON_SIZE, ICON_SIZE)
  const radius = ICON_SIZE * 0.3
  context.fillStyle = '#c5221f'
  context.beginPath()
  context.arc(ICON_SIZE - radius, radius, radius, 0, 2 * Math.PI)
  context.fill()
  context.fillStyle = '#ffffff'
  context.font = `bold ${radius * 1.4}px sans-serif`
  context.textAlign = 'center'
  context.textBaseline = 'middle'
  context.fillText(
    count > 9 ? '9+' : String(count),
    ICON_SIZE - radius,
    radius * 1.05,
    radius * 1.7,
  )
  try {
    return canvas.toDataURL('image/png')
  } catch {
    // The icon comes from another origin.
    return undefined
  }
}

/** Plays two short tones. A browser that has heard no click yet plays nothing. */
function playTone(): void {
  if (typeof AudioContext === 'undefined') return
  const context = new AudioContext()
  if (context.state !== 'running') return void context.close()
  const gain = context.createGain()
  gain.connect(context.destination)
  const { currentTime: start } = context
  gain.gain.setValueAtTime(0, start)
  gain.gain.linearRampToValueAtTime(0.12, start + 0.02)
  gain.gain.setValueAtTime(0.12, start + 0.26)
  gain.gain.linearRampToValueAtTime(0, start + 0.32)
  const oscillator = context.createOscillator()
  oscillator.frequency.setValueAtTime(660, start)
  oscillator.frequency.setValueAtTime(880, start + 0.15)
  oscillator.connect(gain)
  oscillator.addEventListener('ended', () => void context.close())
  oscillator.start(start)
  oscillator.stop(start + 0.34)
}
