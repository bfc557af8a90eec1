import { useAdkTexts } from '../provider.tsx'

/** A file of a message. */
export interface FileViewProps {
  readonly url: string
  readonly mediaType: string
  readonly filename?: string | undefined
}

/** An image as itself, any other file as a link to save it. */
export function FileView({ url, mediaType, filename }: FileViewProps) {
  const { message } = useAdkTexts()
  if (!isFileAddress(url)) return null
  if (mediaType.startsWith('image/'))
    return <img className="adk-picture" src={url} alt={filename ?? message.image} />
  return (
    <a className="adk-attachment" href={url} download={filename ?? true}>
      {filename ?? `${message.file} (${mediaType})`}
    </a>
  )
}

/** The address may come from the model: one that runs must never get into the page. */
function isFileAddress(url: string): boolean {
  return /^(?:data:|blob:|https?:\/\/)/i.test(url)
}
