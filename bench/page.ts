import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

import { launchChromium } from '../e2e/support/launch-chromium.ts'
import { readBundle } from './page/bundle.ts'
import type { Start } from './page/instruments.ts'
import { LONG_BLOCKS } from './page/long-blocks.ts'
import { type ReplyFigures, measureReply, measureStart } from './page/measure.ts'
import { type Addresses, listSubjects, type Subject } from './page/subjects.ts'
import { median } from './statistics.ts'

const EARLIER = 200
const PASSES = process.argv.includes('--quick') ? 1 : 5

const servers = fork(fileURLToPath(new URL('page/servers.ts', import.meta.url)))
const [addresses] = (await once(servers, 'message')) as [Addresses]
const subjects = listSubjects(addresses)
const browser = await launchChromium()

const starts = new Map<Subject, Start[]>()
const replies = new Map<Subject, ReplyFigures[]>()
const blocks = new Map<string, Map<Subject, ReplyFigures[]>>()
const blockSubjects = subjects.filter(({ settings }) => settings['inspector'] !== 'open')
for (let pass = 0; pass < PASSES; pass += 1) {
  for (const subject of subjects) {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
    add(starts, subject, await measureStart(page, subject))
    add(
      replies,
      subject,
      await measureReply(page, subject, { earlier: EARLIER, prompt: 'many words' }),
    )
    await page.close()
  }
  for (const prompt of Object.keys(LONG_BLOCKS))
    for (const subject of blockSubjects) {
      const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
      await measureStart(page, subject)
      const measured = blocks.get(prompt) ?? new Map<Subject, ReplyFigures[]>()
      blocks.set(prompt, measured)
      add(measured, subject, await measureReply(page, subject, { earlier: 2, prompt }))
      await page.close()
    }
}
await browser.close()
servers.disconnect()

function add<Value>(values: Map<Subject, Value[]>, subject: Subject, value: Value): void {
  values.set(subject, [...(values.get(subject) ?? []), value])
}

function row<Value>(
  values: Map<Subject, Value[]>,
  subject: Subject,
  figures: readonly ((value: Value) => number)[],
): string[] {
  return figures.map((figure) => median((values.get(subject) ?? []).map(figure)).toFixed(0))
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const lines = [head, head.map(() => '---'), ...rows]
  process.stdout.write(`${lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n\n`)
}

table(['file', 'KB', 'KB gzip'], await readBundle())
table(
  ['page', 'first contentful paint ms', 'input usable ms', 'KB before the first paint'],
  subjects.map((subject) => [
    subject.name,
    ...row(starts, subject, [
      ({ firstPaint }) => firstPaint,
      ({ inputReady }) => inputReady,
      ({ before }) => before / 1024,
    ]),
  ]),
)
table(
  [
    `5,000 deltas after ${EARLIER} messages`,
    'CPU ms',
    'key p50 ms',
    'key p95 ms',
    'longest task ms',
    'blocked ms',
    'whole ms',
    'updates',
    'earlier messages rendered',
  ],
  subjects.map((subject) => [
    subject.name,
    ...row(replies, subject, [
      ({ cpu }) => cpu,
      ({ p50 }) => p50,
      ({ p95 }) => p95,
      ({ longestTask }) => longestTask,
      ({ blocked }) => blocked,
      ({ whole }) => whole,
      ({ updates }) => updates,
      ({ rerendered }) => rerendered,
    ]),
  ]),
)
table(
  [
    'one block, 200 words a second',
    'page',
    'CPU ms',
    'key p50 ms',
    'key p95 ms',
    'longest task ms',
    'longest frame ms',
  ],
  [...blocks].flatMap(([prompt, measured]) =>
    blockSubjects.map((subject) => [
      prompt,
      subject.name,
      ...row(measured, subject, [
        ({ cpu }) => cpu,
        ({ p50 }) => p50,
        ({ p95 }) => p95,
        ({ longestTask }) => longestTask,
        ({ longestFrame }) => longestFrame,
      ]),
    ]),
  ),
)
