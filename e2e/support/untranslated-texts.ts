import type { Page } from 'playwright-core'

/** Returns the visible texts and accessible names of the page that contain Latin words and no Japanese. */
export async function findUntranslatedTexts(
  page: Page,
  known: readonly RegExp[],
): Promise<string[]> {
  const found = await page.evaluate(() => {
    // Code, and texts of the person and the model, may be in any language.
    const exempt = 'code, pre, kbd, .adk-said, .markdown, [lang=en], .chat-title'
    const isShown = (element: Element): boolean =>
      element.checkVisibility({ visibilityProperty: true }) && !element.closest(exempt)
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
  const untranslated = new Set(found.map((text) => text.trim()).filter(isUntranslated))
  return [...untranslated].filter((text) => !known.some((pattern) => pattern.test(text)))
}

function isUntranslated(text: string): boolean {
  return /[a-z]{2}/i.test(text) && !/[\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Han}]/u.test(text)
}
