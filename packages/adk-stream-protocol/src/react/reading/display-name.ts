/**
 * Returns a name of the code in words, such as "Book trip" for `book_trip` and "Get URL" for `getURL`. A name without letters stays as
 * it is.
 */
export function toWords(name: string): string {
  const words = name
    .replaceAll(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
    .replaceAll(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
    .split(/[_\-.\s/]+/u)
    .filter((word) => word !== '')
    .map((word) => (/^\p{Lu}\p{Ll}/u.test(word) ? word.toLowerCase() : word))
  const text = words.join(' ')
  const [first = ''] = text
  return text === '' ? name : `${first.toUpperCase()}${text.slice(first.length)}`
}

/** The name of a tool or an agent for people: that of the application, the given title, or the name of the code in words. */
export function toDisplayName(
  name: string,
  names: Readonly<Record<string, string>>,
  title?: string,
): string {
  const own = Object.hasOwn(names, name) ? names[name] : undefined
  return own ?? (title === undefined || title.trim() === '' ? toWords(name) : title)
}
