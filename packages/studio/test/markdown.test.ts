import { AdkProvider } from 'adk-stream-protocol/react'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test, vi } from 'vitest'

import { BlockLexer } from '../src/page/conversation/markdown-blocks.ts'
import { MarkdownRenderer } from '../src/page/conversation/markdown-renderer.tsx'

const TEXT = `# Tea & more

A paragraph with **bold**, *emphasis*, \`code\`, [a link][ref] and https://example.com.
Setext
------

- one
- two
  1. nested

  still two

- [x] done

| a | b |
|:--|--:|
| 1 | 2<br>3 |

> quoted **text**
> more

\`\`\`ts
const one = '**'
\`\`\`

[ref]: https://example.com/ref "title"

1) last
2) words &amp; marks
`

const show = (text: string, streaming = false): string =>
  renderToStaticMarkup(createElement(MarkdownRenderer, { text, streaming }))

test('[DM80] headings, lists, tables, quotes, code, links and emphasis become elements', () => {
  expect(show(TEXT)).toMatchInlineSnapshot(`
    "<div class="markdown"><h3 dir="auto">Tea &amp; more</h3><h4 dir="auto">A paragraph with <strong>bold</strong>, <em>emphasis</em>, <code>code</code>, <a href="https://example.com/ref" target="_blank" rel="noopener noreferrer">a link</a> and <a href="https://example.com" target="_blank" rel="noopener noreferrer">https://example.com</a>.
    Setext</h4><ul><li dir="auto"><p dir="auto">one</p></li><li dir="auto"><p dir="auto">two</p><ol start="1"><li dir="auto">nested</li></ol><p dir="auto">still two</p></li><li dir="auto"><input type="checkbox" disabled="" readOnly="" checked=""/><p dir="auto">done</p></li></ul><div class="wide" tabindex="0"><table><thead><tr><th dir="auto" style="text-align:left">a</th><th dir="auto" style="text-align:right">b</th></tr></thead><tbody><tr><td dir="auto" style="text-align:left">1</td><td dir="auto" style="text-align:right">2<br/>3</td></tr></tbody></table></div><blockquote dir="auto"><p dir="auto">quoted <strong>text</strong>
    more</p></blockquote><figure class="adk-code adk-code-block" aria-label="ts"><figcaption><span class="adk-code-language">ts</span><span role="status" class="adk-copied"></span><button type="button" class="adk-link">Copy</button></figcaption><div class="adk-code-body" dir="ltr" tabindex="0"><pre><code>const one = &#x27;**&#x27;</code></pre></div></figure><ol start="1"><li dir="auto">last</li><li dir="auto">words &amp; marks</li></ol></div>"
  `)
})

test.each(['- [x] done\n- [ ] open', '- [x] done\n\n- [ ] open'])(
  '[DM80] tasks have checkboxes: %j',
  (text) => {
    expect(show(text).match(/<input[^>]*>/g)).toHaveLength(2)
    expect(show(text)).not.toContain('[')
  },
)

test('[DM373] a text that grows character by character has the blocks of the whole text', () => {
  const growing = new BlockLexer()
  for (let end = 1; end <= TEXT.length; end += 1) {
    const text = TEXT.slice(0, end)
    growing.lex(text, { streaming: true })
    const { blocks } = growing.lex(text, { streaming: false })
    const whole = new BlockLexer().lex(text, { streaming: false }).blocks
    expect(blocks.map(({ raw }) => raw)).toEqual(whole.map(({ raw }) => raw))
  }
})

test('[DM373] a text that does not continue the last one is parsed again', () => {
  const lexer = new BlockLexer()
  lexer.lex('one\n\ntwo\n\nthree', { streaming: true })
  const { blocks } = lexer.lex('other\n\ntext', { streaming: true })
  expect(blocks.map(({ raw }) => raw)).toEqual(['other', '\n\n', 'text'])
})

test('[DM80] unfinished emphasis and links are shown as if they were finished', () => {
  expect(show('Some **bold', true)).toContain('<strong>bold</strong>')
  expect(show('Some **bold', false)).toContain('**bold')
})

test('[DM32] [DM373] HTML is shown as text, and only http(s) links are links', () => {
  const html = show(
    'a <script>x()</script> <img src=x onerror=y> [run](javascript:alert(1)) [enc](java&#115;cript:x) ![spy](https://spy.example/1) ![odd](data:text/html,x)\n\n<iframe src="https://spy.example"></iframe>',
  )
  expect(html).not.toMatch(/<(script|iframe|img)|href="(?!https:\/\/spy\.example\/1")/)
  expect(html).toContain('&lt;script&gt;')
})

const FENCE = '```'
const CODE = `${FENCE}ts\nconst one = 1\n`

test.each([
  ['while it is being written', CODE, true, []],
  ['with a part of the last fence', `${CODE}${FENCE.slice(1)}`, true, []],
  ['with the last fence', `${CODE}${FENCE}`, true, [['const one = 1', 'ts']]],
  ['with text behind it', `${CODE}${FENCE}\n\nMore`, true, [['const one = 1', 'ts']]],
  ['that ended without a fence', CODE, false, [['const one = 1', 'ts']]],
  [
    'inside a list',
    `- one\n\n  ${FENCE}ts\n  const one = 1\n  ${FENCE}`,
    true,
    [['const one = 1', 'ts']],
  ],
  ['with more backticks', `${FENCE}\`ts\n${FENCE}\n`, true, []],
] as const)(
  '[DM530] code %s: it is coloured when it is complete',
  (_when, text, streaming, calls) => {
    const renderCode = vi.fn(() => undefined)
    const renderer = createElement(MarkdownRenderer, { text, streaming })
    const html = renderToStaticMarkup(
      // The type of the props has `children`.
      // oxlint-disable-next-line react/no-children-prop
      createElement(AdkProvider, { renderCode, children: renderer }),
    )
    expect(html).toContain('<pre><code>')
    expect(renderCode.mock.calls).toEqual(calls)
  },
)

test.each([
  ['Send $50 to Alice and $30 to Bob', 0],
  ['It costs $5 or 10$ there, US$ 3 and $1,000.50.', 0],
  ['`$x^2$` is code', 0],
  ['\\$x^2\\$ is escaped', 0],
  ['Euler: $e^{i\\pi} + 1 = 0$.', 1],
  ['Let $n$ be \\(a_1\\) or $$b$$.', 3],
  ['$$\n\\int_0^1 x\\,dx\n$$\n\nand\n\n\\[\n a \\le b\n\\]', 2],
  ['```math\n\\sqrt 2\n```', 1],
] as const)('[DM531] formulas are distinguished from amounts of money: %j', (text, count) => {
  expect(show(text).match(/class="maths/g) ?? []).toHaveLength(count)
})
