import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'

import { ChatLink } from '../src/page/inbox/inbox.tsx'

test.each([
  ['named', 'Open chat “Rent”'],
  ['unnamed', 'Open chat'],
  ['unknown', 'Open chat'],
])('[DM692] the link from an approval to its chat names the chat: %s', (chatId, text) => {
  const chat = { createdAt: 0, updatedAt: 0, running: false, pending: 1 }
  const chats = [
    { ...chat, id: 'named', title: 'Rent' },
    { ...chat, id: 'unnamed', title: '' },
  ]
  const link = createElement(ChatLink, { chatId, chats, onOpenChat: () => undefined })
  expect(renderToStaticMarkup(link).replaceAll(/<[^>]*>/g, '')).toBe(text)
})
