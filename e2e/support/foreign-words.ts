import type { Page } from 'playwright-core'

/** Texts and names on the page, as a reader sees or hears them, that hold Latin words and nothing Japanese. */
export async function findForeignWords(page: Page, known: readonly RegExp[]): Promise<string[]> {
  const found = await page.evaluate(() => {
    // What people and models wrote, and what is code, is in whatever language it is in.
    const theirs = 'code, pre, kbd, .adk-said, .markdown, [lang=en], .chat-title'
    const isShown = (element: Element): boolean =>
      element.checkVisibility({ visibilityProperty: true }) && !element.closest(theirs)
    const texts: string[] = []
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node.parentElement && isShown(node.parentElement)) texts.push(node.nodeValue ?? '')
    }
    for (const element of document.body.querySelectorAll('*')) {
      if (!isShown(element)) continue
      for (const name of ['aria-label', 'title', 'placeholder', 'alt', 'aria-valuetext']) {
        texts.push(element.getAttribute(name) ?? '')
      }
    }
    return [...texts, document.title]
  })
  const words = new Set(found.map((text) => text.trim()).filter(isForeign))
  return [...words].filter((text) => !known.some((pattern) => pattern.test(text)))
}

function isForeign(text: string): boolean {
  return /[a-z]{2}/i.test(text) && !/[\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Han}]/u.test(text)
}
