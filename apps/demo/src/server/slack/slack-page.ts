import type { Language } from '../../demo-info.ts'
import type { SlackBlock, SlackMessage, SlackView } from './slack-service.ts'

interface SlackPage {
  readonly language: Language
  /** The newest last: one that arrives does not move the buttons of the others. */
  readonly messages: readonly SlackMessage[]
  readonly view: SlackView | undefined
  /** What the member was told after a click. */
  readonly note: string | undefined
}

/** Returns the page of a member. Its script updates the messages. Without scripts, it loads itself again while nothing is typed. */
export function renderSlack({ language, messages, view, note }: SlackPage): string {
  const { title, what, none } = TEXTS[language]
  const refresh = view ? '' : '<noscript><meta http-equiv="refresh" content="3"></noscript>'
  const list = messages.map(renderMessage).join('')
  return `<!doctype html><html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">${refresh}<title>${title}</title><style>${STYLES}</style></head><body><header><h1>${title}</h1><p>${what}</p></header><p role="status" class="note">${escape(note ?? '')}</p><main>${view ? renderView(view) : ''}${list === '' ? `<p>${none}</p>` : list}</main><script>${SLACK_SCRIPT}</script></body></html>`
}

/**
 * Updates what has changed, without a reload: a person keeps the focus, and a screen reader its place. What the person was told after a click
 * stays.
 */
export const SLACK_SCRIPT = `
scrollTo(0, document.body.scrollHeight)
setInterval(async () => {
  const main = document.querySelector('main')
  if (main.querySelector('textarea')) return
  const response = await fetch(location.href).catch(() => undefined)
  if (!response?.ok) return
  const next = new DOMParser().parseFromString(await response.text(), 'text/html')
  const told = next.querySelector('.note').textContent
  if (told) document.querySelector('.note').textContent = told
  const changed = next.querySelector('main')
  if (changed.innerHTML === main.innerHTML) return
  const { id } = document.activeElement
  main.replaceWith(changed)
  if (id) document.getElementById(id)?.focus()
}, 1000)
`

function renderView({ title, label, submit, close }: SlackView): string {
  return `<form method="post" action="/slack/click" class="message"><h2>${escape(title)}</h2><label>${escape(label)}<textarea name="reason" rows="3" maxlength="2000" autofocus></textarea></label><p class="actions"><button name="action" value="submit" class="danger">${escape(submit)}</button><button name="action" value="close">${escape(close)}</button></p></form>`
}

function renderMessage({ ts, blocks, replies }: SlackMessage): string {
  const shown = blocks.map((block) => renderBlock(block, ts)).join('')
  const id = escape(ts)
  const thread = replies.map((text) => `<li>${text}</li>`).join('')
  return `<article class="message" aria-labelledby="title-${id}">${shown}${thread === '' ? '' : `<ul>${thread}</ul>`}</article>`
}

function renderBlock({ type, text, elements = [] }: SlackBlock, ts: string): string {
  switch (type) {
    case 'header':
      return `<h2 id="title-${escape(ts)}">${escape(text?.text ?? '')}</h2>`
    case 'section':
      return `<p class="details">${escape(text?.text ?? '')}</p>`
    case 'context':
      return `<p class="context">${elements.map((element) => escape(textOf(element))).join(' · ')}</p>`
    case 'actions':
      return `<div class="actions">${elements.map((element) => renderButton(element, ts)).join('')}</div>`
  }
}

type Element = NonNullable<SlackBlock['elements']>[number]

function renderButton(element: Element, ts: string): string {
  const { action_id: action = '', value = '', style = '', url } = element
  const label = escape(textOf(element))
  if (url !== undefined) return `<a href="${escape(url)}">${label}</a>`
  return `<form method="post" action="/slack/click"><input type="hidden" name="ts" value="${escape(ts)}"><input type="hidden" name="value" value="${escape(value)}"><button id="${escape(`${action}-${ts}`)}" name="action" value="${escape(action)}" class="${escape(style)}">${label}</button></form>`
}

function textOf({ text }: Element): string {
  return typeof text === 'string' ? text : text.text
}

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

const TEXTS = {
  en: {
    title: 'Demo Slack',
    what: 'This page belongs to the demo. It stands for Slack, so nothing leaves this machine. Calls that wait for you appear here as cards, and a minute later as a reminder.',
    none: 'No message yet. Ask the assistant for a payment.',
  },
  ja: {
    title: 'Demo Slack',
    what: 'これはデモのページで、Slackの代わりです。このコンピューターの外には何も送信されません。承認待ちの操作がカードとして届き、1分後にリマインダーが届きます。',
    none: 'まだメッセージはありません。アシスタントに送金を頼んでください。',
  },
} as const satisfies Record<Language, unknown>

const STYLES = `
:root { color-scheme: light dark; }
body { margin: 1.5rem; font: 1rem/1.6 system-ui, sans-serif; }
header, main, .note { max-width: 40rem; margin-inline: auto; }
h1 { font-size: 1.5rem; }
h2 { font-size: 1.05rem; margin: 0; }
.message { margin-block: 1rem; padding: 1rem; border: 1px solid GrayText; border-radius: 0.75rem; }
.details { white-space: pre-line; overflow-wrap: anywhere; margin-block: 0.5rem; }
.context { font-size: 0.875rem; opacity: 0.75; margin-block: 0.5rem; }
.note:empty { display: none; }
.note { box-sizing: border-box; padding: 0.5rem 1rem; border-inline-start: 4px solid GrayText; }
.actions { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; margin-block: 0.5rem 0; }
textarea { display: block; width: 100%; box-sizing: border-box; font: inherit; }
button, .actions a { min-height: 2.75rem; padding: 0.5rem 1rem; border: 1px solid GrayText; border-radius: 0.5rem; background: Canvas; color: CanvasText; font: inherit; cursor: pointer; box-sizing: border-box; }
.actions a { text-decoration: none; display: inline-flex; align-items: center; }
button.primary { background: #0b6b3a; border-color: #0b6b3a; color: white; }
button.danger { background: #b3261e; border-color: #b3261e; color: white; }
`
