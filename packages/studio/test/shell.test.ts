import { expect, test } from 'vitest'

import { checkPicture, picturesIn } from '../src/page/composer/pictures.ts'
import { toMarkdown } from '../src/page/conversation/message-actions.tsx'
import { matchShortcut } from '../src/page/shell/shortcuts.ts'

const MEBI = 1_048_576

test.each([
  ['a PNG', { type: 'image/png', size: 1 }, [], undefined],
  ['the largest one', { type: 'image/jpeg', size: 5 * MEBI }, [], undefined],
  ['one byte more', { type: 'image/jpeg', size: 5 * MEBI + 1 }, [], 'size'],
  ['an SVG, which may contain scripts', { type: 'image/svg+xml', size: 1 }, [], 'type'],
  ['a text', { type: 'text/plain', size: 1 }, [], 'type'],
  ['too large in total', { type: 'image/png', size: 3 * MEBI }, [{ size: 3 * MEBI }], 'total'],
  [
    'a ninth one',
    { type: 'image/png', size: 1 },
    Array.from({ length: 8 }, () => ({ size: 1 })),
    'count',
  ],
])('[DM64] a picture is checked before it is attached: %s', (...[, file, others, kind]) => {
  expect(checkPicture({ name: 'x', ...file }, others)?.kind).toBe(kind)
})

test('[DM64] a pasted table is text, although the clipboard also has a picture of it', () => {
  const picture = new File(['x'], 'x.png', { type: 'image/png' })
  const files = [picture] as unknown as FileList
  expect(picturesIn({ files, types: ['Files'] })).toEqual([picture])
  expect(picturesIn({ files, types: ['text/plain', 'text/html', 'Files'] })).toEqual([])
})

test('[DM66] the copied text has no reasoning', () => {
  const parts = [
    { type: 'step-start' as const },
    { type: 'reasoning' as const, text: 'Hm.' },
    { type: 'text' as const, text: '# One\n' },
    { type: 'text' as const, text: '- **two**' },
  ]
  expect(toMarkdown({ parts })).toBe('# One\n\n- **two**')
})

test.each([
  ['Alt+N', { altKey: true, code: 'KeyN', key: 'n' }, true, 'newChat'],
  ['Alt+N on a Mac', { altKey: true, code: 'KeyN', key: 'Dead' }, true, 'newChat'],
  [
    'AltGr+N, which types a character',
    { altKey: true, ctrlKey: true, code: 'KeyN', key: 'ñ' },
    true,
    undefined,
  ],
  ['N', { code: 'KeyN', key: 'n' }, false, undefined],
  ['?', { shiftKey: true, code: 'Slash', key: '?' }, false, 'help'],
  ['? in an input', { shiftKey: true, code: 'Slash', key: '?' }, true, undefined],
  ['Alt+/ in an input', { altKey: true, code: 'Slash', key: '/' }, true, 'help'],
])('[DM67] the shortcut of %s', (...[, key, isTyping, name]) => {
  const bare = { altKey: false, ctrlKey: false, metaKey: false, shiftKey: false }
  expect(matchShortcut({ ...bare, ...key }, isTyping)).toBe(name)
})
